"""Where a store may stand: which file systems and folders lose what SQLite writes to them.

Locks and the log's shared memory must hold for everybody who has the file open, and network file systems promise
neither; a program that synchronises a folder carries database and log to another machine one by one, and back
(sqlite.org/howtocorrupt.html, sqlite.org/wal.html).
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePath
from typing import Final

from ledgerstone.errors import StoreError

# File systems whose other end is another machine, by the types that Linux gives them.
REMOTE: Final = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "afs", "coda", "ceph", "glusterfs", "lustre"),
        *("gpfs", "beegfs", "orangefs", "pvfs2", "davfs", "webdav", "vboxsf", "vmhgfs", "prl_fs", "fuse"),
    }
)
# File systems in user space that are on a disk of this machine; every other one is not known to be.
LOCAL_FUSE: Final = frozenset(
    {
        *("apfs", "bindfs", "cryfs", "dwarfs", "encfs", "exfat", "exfat-fuse", "ext2fs", "fuse-ext2", "fuse-overlayfs"),
        *("fuse2fs", "gocryptfs", "lxcfs", "mergerfs", "ntfs", "ntfs-3g", "ntfs3", "portal", "securefs"),
        *("squashfuse", "unionfs", "unionfs-fuse", "veracrypt", "zfs-fuse"),
    }
)
# Names of folders that programs which synchronise them make, and what some append to them.
_SYNCED: Final = re.compile(
    r"(Dropbox|OneDrive|iCloud ?Drive|Google ?Drive|Nextcloud|ownCloud|Syncthing|MEGA|MEGAsync"
    r"|pCloud ?Drive|Proton ?Drive|Seafile|SynologyDrive|Box Sync|Insync)(?: ?\(.*| - .*)?"
)
# Folders of macOS in which all is synchronised: iCloud Drive, and what other programs put under its roof.
_SYNCED_PARTS: Final = {"Mobile Documents": "iCloud Drive", "CloudStorage": "a cloud's program"}
# What such programs leave at the top of a folder.
_MARKS: Final = {
    ".stfolder": "Syncthing",
    ".dropbox": "Dropbox",
    ".dropbox.cache": "Dropbox",
    ".owncloudsync.log": "ownCloud",
    ".nextcloudsync.log": "Nextcloud",
    ".tmp.drivedownload": "Google Drive",
    ".tmp.driveupload": "Google Drive",
    ".849C9593-D756-4E56-8D6E-42412F2A707B": "OneDrive",
    ".resilio-sync": "Resilio Sync",
    ".sync/ID": "Resilio Sync",
}
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
MOUNTS: Final = Path("/proc/self/mountinfo")


def check(path: Path) -> None:
    """Refuse a place where a store would be lost or forked, with StoreError; one that cannot be told is let pass."""
    found = peril(path)
    if found is not None:
        raise StoreError(
            f"{path} {found}",
            hint="put the store on a disk of this machine (LEDGERSTONE_STORE); to read it where it is: --read-only; "
            "to use it there whatever comes of it: LEDGERSTONE_STORE_ON=anywhere",
        )


def peril(path: Path) -> str | None:
    """What is wrong with the place of a path, as the end of a sentence, or None."""
    real = Path(os.path.realpath(path))
    kind = carried(mounts(), str(real))
    if kind is not None and is_remote(kind):
        return f"is on a file system of type {kind}, where locks and shared memory do not hold"
    program = synced(real) or marked(real)
    if program is not None:
        return f"is in a folder that {program} synchronises, database and log each by itself"
    return None


def mounts() -> str:
    """What this process has mounted, as Linux lists it; empty where it does not say."""
    try:
        return os.fsdecode(MOUNTS.read_bytes())
    except OSError:
        return ""


def carried(mountinfo: str, path: str) -> str | None:
    """The type of the file system that carries an absolute path, by proc_pid_mountinfo(5); None when none does.

    The deepest mount point above the path counts, and of several mounts at one point the last.
    """
    deepest, kind = -1, None
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if not dash or len(fields) < len(("id", "parent", "device", "root", "point")):
            continue
        point = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= deepest:
            deepest, kind = len(point), after.split(" ")[0]
    return kind


def is_remote(kind: str) -> bool:
    """Whether a type of file system is, or may be, on another machine."""
    family, _, program = kind.partition(".")
    return kind in REMOTE or (family == "fuse" and program not in LOCAL_FUSE)


def synced(path: PurePath) -> str | None:
    """Which program synchronises a path, as far as the names of the folders above it say; None when they say none."""
    for part in path.parts[:-1]:
        if part in _SYNCED_PARTS:
            return _SYNCED_PARTS[part]
        found = _SYNCED.fullmatch(part)
        if found is not None:
            return found[1]
    return None


def marked(path: Path) -> str | None:
    """Which program synchronises a path, as far as its marks in the folders above it say; None without any."""
    for folder in path.parents:
        for mark, program in _MARKS.items():
            # In a home folder, .dropbox is the folder of the program's own settings.
            if os.path.lexists(folder / mark) and not (mark == ".dropbox" and (folder / mark).is_dir()):
                return program
    return None

"""Where a store may stand: network file systems and synchronised folders are refused; what is beside them is not."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone import Memory, StoreError, volumes
from ledgerstone.volumes import Carrier
from tests.stores import KEYS, OWNER, open_memory

# As a desktop lists them: optional fields, escapes, a mount over a mount, one below another.
MOUNTINFO = r"""
22 27 0:21 / /proc rw,relatime shared:12 - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
40 27 0:40 / /home rw - nfs4 server:/export/home rw,vers=4.2
41 40 0:41 / /home/ada rw - ext4 /dev/vdb rw
42 41 0:42 / /home/ada/team rw - cifs //server/team rw
43 41 0:43 / /home/ada/far\040away rw - fuse.sshfs host:/ rw
44 41 0:44 / /home/ada/vault rw - fuse.gocryptfs /home/ada/.vault rw
45 27 0:45 / /srv rw - ext4 /dev/vdc rw
46 45 0:46 / /srv rw - 9p host rw,trans=virtio
47 27 0:47 / /mnt/old rw - nfs server:/old rw
48 47 0:48 / /mnt/old rw - xfs /dev/vdd rw
49 27 0:49 / /run/user/1000/doc rw - fuse.portal portal rw
50 27 8:1 / /media/stick rw - fuseblk /dev/sda1 rw
51 27 0:51 / /mnt/cloud rw - fuse.rclone drive: rw
a line that is no mount
"""


@pytest.mark.parametrize(
    ("path", "kind", "remote"),
    [
        ("/var/lib/store.db", "ext4", False),
        ("/home/bob/store.db", "nfs4", True),
        ("/home/ada/store.db", "ext4", False),
        ("/home/ada/team/store.db", "cifs", True),
        ("/home/ada/teamwork/store.db", "ext4", False),
        ("/home/ada/far away/store.db", "fuse.sshfs", True),
        ("/home/ada/vault/store.db", "fuse.gocryptfs", False),
        ("/srv/store.db", "9p", True),
        ("/mnt/old/store.db", "xfs", False),
        ("/media/stick/store.db", "fuseblk", False),
        ("/mnt/cloud/store.db", "fuse.rclone", True),
    ],
)
def test_the_deepest_and_last_mount_carries_a_path(path: str, kind: str, *, remote: bool) -> None:
    """Names are compared part by part, spaces are spelled out, and a mount over another one hides it."""
    found = volumes.carried(MOUNTINFO, path)

    assert found is not None
    assert found.kind == kind
    assert volumes.is_remote(found) is remote


DISKS = ("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "hfs", "bcachefs", "f2fs", "fuse.mergerfs")


@pytest.mark.parametrize(
    "kind",
    [
        *("nfs", "nfs4", "cifs", "smb3", "ceph", "fuse.s3fs", "fuse.google-drive", "fuse.sshfs", "fuse"),
        *("smbfs", "afpfs", "webdav", "macfuse", "osxfuse"),
    ],
)
def test_a_file_system_of_another_machine_is_remote(kind: str) -> None:
    """And whatever runs in user space and is not known to be local; the disks of this machine are not."""
    assert volumes.is_remote(Carrier(kind))

    assert not any(volumes.is_remote(Carrier(disk)) for disk in DISKS)


@pytest.mark.parametrize(
    "kind",
    [
        *("virtiofs", "9p", "vboxsf", "vmhgfs", "prl_fs", "drvfs", "AppleVirtIOFS"),
        *("fakeowner", "osxfs", "fuse.grpcfuse", "fuse.vmhgfs-fuse", "fuse.lima-sshfs"),
    ],
)
def test_a_folder_that_a_host_shares_is_remote(kind: str) -> None:
    """With a virtual machine or a container, by whatever means; the disk that a machine was given whole is its own."""
    assert volumes.is_remote(Carrier(kind, "/work"))

    assert not any(volumes.is_remote(Carrier(whole, "/")) for whole in ("virtiofs", "9p"))
    assert volumes.is_remote(Carrier("vboxsf", "/"))
    assert not volumes.is_remote(Carrier("overlay", "/work"))


def darwin(kind: str, flags: int) -> bytes:
    """What macOS's statfs(2) says, as its header lays it out."""
    numbers = struct.pack("=Ii5Q2iIIII", 4096, 1 << 20, 1, 2, 3, 4, 5, 6, 7, 501, 26, flags, 0)
    return (
        numbers
        + kind.encode().ljust(16, b"\0")
        + b"/Volumes/Data".ljust(1024, b"\0")
        + b"/dev/disk3".ljust(1024, b"\0")
    )


# MNT_LOCAL, beside MNT_JOURNALED and MNT_NOSUID.
LOCAL, ELSEWHERE = 0x00801008, 0x00800008


@pytest.mark.parametrize(
    ("kind", "flags", "remote"),
    [
        ("apfs", LOCAL, False),
        ("hfs", LOCAL, False),
        ("exfat", LOCAL, False),
        ("smbfs", ELSEWHERE, True),
        ("nfs", ELSEWHERE, True),
        ("afpfs", ELSEWHERE, True),
        ("webdav", ELSEWHERE, True),
        ("macfuse", LOCAL, True),
        ("something new", ELSEWHERE, True),
    ],
)
def test_macos_tells_what_a_file_system_is(kind: str, flags: int, *, remote: bool) -> None:
    """By its type's name, and by whether the system calls it local; where nothing was told nothing is known."""
    found = volumes.told(darwin(kind, flags))

    assert found is not None
    assert found.kind == kind
    assert volumes.is_remote(found) is remote
    assert volumes.told(b"") is None


@given(text=st.text(max_size=200), path=st.text(max_size=20))
def test_no_list_of_mounts_is_too_strange(text: str, path: str) -> None:
    """Whatever stands there, the answer is a type out of it or none; without any lines none."""
    found = volumes.carried(text, f"/{path}")

    assert found is None or found.kind in text
    assert volumes.carried("", f"/{path}") is None


def test_the_mounts_of_this_machine_are_read() -> None:
    """Where the system lists them, /proc is known for what it is; elsewhere nothing is told."""
    found = volumes.carried(volumes.mounts(), "/proc/self")

    assert (found and found.kind) == ("proc" if volumes.MOUNTS.exists() else None)


@pytest.mark.parametrize(
    ("path", "program"),
    [
        ("/home/ada/Dropbox/store.db", "Dropbox"),
        ("/home/ada/Dropbox (Personal)/notes/store.db", "Dropbox"),
        ("/home/ada/OneDrive - Contoso/store.db", "OneDrive"),
        ("/Users/ada/Library/Mobile Documents/com~apple~CloudDocs/store.db", "iCloud Drive"),
        ("/Users/ada/Library/CloudStorage/GoogleDrive-ada@example.org/store.db", "a cloud's program"),
        ("/home/ada/Google Drive/store.db", "Google Drive"),
        ("/home/ada/Nextcloud/store.db", "Nextcloud"),
        ("/home/ada/pCloudDrive/store.db", "pCloudDrive"),
        ("/home/ada/.local/share/ledgerstone/store.db", None),
        ("/home/ada/src/dropbox-client/store.db", None),
        ("/home/ada/Dropboxes/store.db", None),
        ("/home/ada/Dropbox", None),
    ],
)
def test_a_folder_that_is_synchronised_is_known_by_its_name(path: str, program: str | None) -> None:
    """As such programs name them, with what they append; a name that only begins so, and a file's, is none."""
    assert volumes.synced(PurePosixPath(path)) == program


@pytest.mark.parametrize("mark", [".stfolder", ".dropbox", ".nextcloudsync.log", ".tmp.driveupload"])
def test_a_folder_that_is_synchronised_is_known_by_its_mark(tmp_path: Path, mark: str) -> None:
    """At its top, however far above; what stands beside it is not synchronised."""
    top = tmp_path / "notes"
    (top / "deep" / "below").mkdir(parents=True)
    (top / mark).touch()

    with pytest.raises(StoreError, match="synchronises"):
        open_memory(top / "deep" / "below" / "store.db")

    assert list((top / "deep" / "below").iterdir()) == []
    open_memory(tmp_path / "store.db").close()


def test_the_settings_of_such_a_program_are_no_mark(tmp_path: Path) -> None:
    """Whoever has Dropbox has a folder of that name at home; the file of that name is at the top of what it carries."""
    (tmp_path / ".dropbox" / "instance1").mkdir(parents=True)

    open_memory(tmp_path / "store.db").close()


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is on another machine, as far as this one's mounts say."""
    folder = tmp_path / "shared"
    folder.mkdir()
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 1 0:1 / / rw - ext4 x rw\n2 1 0:2 / {folder} rw - nfs4 server:/x rw\n", encoding="utf-8")
    monkeypatch.setattr(volumes, "MOUNTS", mounts)
    return folder


def test_a_store_is_neither_made_nor_opened_on_a_network_file_system(shared: Path, tmp_path: Path) -> None:
    """Nothing is made there; a store that came there is only read, unless it is told that it may stand anywhere."""
    with pytest.raises(StoreError, match="type nfs4") as refusal:
        open_memory(shared / "store.db")
    assert list(shared.iterdir()) == []
    with open_memory(tmp_path / "store.db") as memory:
        kept = memory.remember("beside it").record
    there = Path(shutil.copy(tmp_path / "store.db", shared))

    with pytest.raises(StoreError, match="type nfs4"):
        open_memory(there, create=False)

    assert "LEDGERSTONE_STORE_ON=anywhere" in refusal.value.hint
    with Memory.open(there, keys=KEYS, caller=OWNER, state=None, read_only=True) as memory:
        assert memory.get(kept.address) == kept
    with Memory.open(there, keys=KEYS, caller=OWNER, state=None, anywhere=True) as memory:
        assert memory.remember("all the same").sequence


def test_a_store_is_not_moved_to_a_network_file_system(shared: Path, tmp_path: Path) -> None:
    """Neither restored nor imported there, unless told that it may; a backup, which nobody works on, may lie there."""
    with open_memory(tmp_path / "store.db") as memory:
        memory.remember("one")
        backup = memory.backup(shared / "backup").path
        lines = list(memory.export().pieces)

    with pytest.raises(StoreError, match="type nfs4"):
        Memory.restore(backup, shared / "store.db", keys=KEYS, caller=OWNER)
    with pytest.raises(StoreError, match="type nfs4"):
        Memory.import_lines(lines, shared / "store.db", keys=KEYS, caller=OWNER)

    assert list(shared.iterdir()) == [backup]
    Memory.restore(backup, shared / "store.db", keys=KEYS, caller=OWNER, anywhere=True)
    Memory.import_lines(lines, shared / "other.db", keys=KEYS, caller=OWNER, anywhere=True)

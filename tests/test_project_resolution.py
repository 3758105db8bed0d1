"""A working directory leads to its project, whatever shape the repository around it has."""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledgerstone.core.namespaces import Match, choose_remote, resolve, unresolved
from ledgerstone.core.values import AliasOf
from ledgerstone.entrypoints import projects
from ledgerstone.entrypoints.projects import discover, read_remotes
from ledgerstone.errors import NamespaceError

APP = "git@example.org:team/app.git"
LIB = "https://example.org/team/lib"
OTHER = "https://example.org/someone/else"


@dataclass(frozen=True)
class Home:
    """A home directory in which git sees nothing of the machine it runs on."""

    path: Path
    environment: dict[str, str]

    def git(self, *arguments: str, at: Path | None = None, check: bool = True) -> str:
        """Run the real git."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=at or self.path,
            env=self.environment,
            capture_output=True,
            text=True,
            check=check,
        )
        return done.stdout + done.stderr

    def repository(self, name: str = "src/app", *, origin: str | None = APP) -> Path:
        """Make a repository with one commit and, unless told otherwise, an origin."""
        place = self.path / name
        self.git("init", "--quiet", str(place))
        self.git("commit", "--quiet", "--allow-empty", "--message=first", at=place)
        if origin is not None:
            self.git("remote", "add", "origin", origin, at=place)
        return place

    def folder(self, name: str) -> Path:
        """Make a directory."""
        place = self.path / name
        place.mkdir(parents=True)
        return place

    def remote(self, cwd: Path) -> str | None:
        """Find the remote that speaks for a working directory."""
        return choose_remote(discover(cwd, self.path).remotes)


@dataclass(frozen=True)
class Ledger:
    """The aliases a store knows, each of one namespace."""

    remotes: dict[str, str]
    paths: dict[Path, str]

    def exists(self, namespace_id: str) -> bool:
        """Know every namespace that has an alias."""
        return namespace_id in {*self.remotes.values(), *self.paths.values()}

    def known_by(self, namespace_id: str) -> tuple[str, ...]:
        """Nothing here is known by two names."""
        return (namespace_id,)

    def by_alias(self, kind: AliasOf, value: str) -> tuple[str, ...]:
        """Look among the remotes or the paths."""
        found = self.remotes.get(value) if kind is AliasOf.REMOTE else self.paths.get(Path(value))
        return () if found is None else (found,)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home and a git that reads no configuration but what a test writes there."""
    path = tmp_path.resolve() / "home"
    path.mkdir()
    who = {f"GIT_{role}_{what}": "nobody" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(path),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(path / ".gitconfig"),
        "LC_ALL": "C",
        **who,
    }
    return Home(path, environment)


def test_a_repository_is_found_from_any_directory_in_it(home: Home) -> None:
    """The remote speaks for the whole checkout; its root and what lies around it can be aliased too."""
    app = home.repository()
    deep = home.folder("src/app/web/ui")

    hints = discover(deep, home.path)

    assert choose_remote(hints.remotes) == "example.org/team/app"
    assert hints.inside == (str(deep), str(deep.parent))
    assert hints.paths == (str(app), str(app.parent))
    assert hints.reason is None


def test_a_symbolic_link_leads_to_the_real_place(home: Home) -> None:
    """Two ways to one checkout are one place."""
    app = home.repository()
    link = home.path / "shortcut"
    link.symlink_to(app)

    assert discover(link, home.path) == discover(app, home.path)


def test_worktrees_share_their_project(home: Home) -> None:
    """A linked worktree has its repository's remote, root and inner directories, wherever it lies."""
    app = home.repository()
    home.folder("src/app/web")
    worktree = home.path / "elsewhere" / "fix"
    home.git("worktree", "add", "--quiet", str(worktree), at=app)
    web = home.folder("elsewhere/fix/web")

    assert discover(web, home.path) == discover(app / "web", home.path)
    assert discover(worktree, home.path) == discover(app, home.path)


def test_worktrees_of_a_bare_repository_share_their_project(home: Home) -> None:
    """The layout with a hidden bare repository and a ``.git`` file is one project at every level."""
    app = home.repository("origin", origin=None)
    project = home.folder("src/app")
    home.git("clone", "--quiet", "--bare", str(app), str(project / ".bare"))
    (project / ".git").write_text("gitdir: ./.bare\n")
    home.git("remote", "set-url", "origin", APP, at=project)
    home.git("worktree", "add", "--quiet", "fix", at=project)

    hints = discover(project, home.path)

    assert choose_remote(hints.remotes) == "example.org/team/app"
    assert discover(project / "fix", home.path) == hints
    assert hints.paths == (str(project), str(project.parent))


def test_a_plain_bare_repository_and_its_worktrees_are_one_project(home: Home) -> None:
    """A bare repository is named by its own directory, seen from inside it or from a worktree."""
    app = home.repository("origin", origin=None)
    bare = home.path / "srv" / "app.git"
    home.git("clone", "--quiet", "--bare", str(app), str(bare))
    home.git("remote", "set-url", "origin", APP, at=bare)
    home.git("worktree", "add", "--quiet", str(home.path / "fix"), at=bare)

    hints = discover(bare, home.path)

    assert choose_remote(hints.remotes) == "example.org/team/app"
    assert discover(home.path / "fix", home.path) == hints
    assert discover(bare / "refs", home.path).paths == hints.paths


def test_tracked_files_that_look_like_a_bare_repository_select_nothing(home: Home) -> None:
    """A clone may carry a directory shaped like a repository; the clone's own remote stays in force."""
    app = home.repository()
    trap = app / "fixtures" / "trap"
    home.git("init", "--quiet", "--bare", str(trap))
    home.git("remote", "add", "origin", OTHER, at=trap)

    assert home.remote(trap) == "example.org/team/app"
    assert home.git("remote", "get-url", "origin", at=trap).strip() == OTHER


def test_a_submodule_is_its_own_project(home: Home) -> None:
    """It has its own remote and root, and nothing of the repository around it, alias or remote."""
    app = home.repository()
    lib = home.repository("lib", origin=None)
    home.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(lib), "lib", at=app)
    home.git("remote", "set-url", "origin", LIB, at=app / "lib")

    hints = discover(app / "lib", home.path)

    assert (app / "lib" / ".git").is_file()
    assert choose_remote(hints.remotes) == "example.org/team/lib"
    assert hints.paths == (str(app / "lib"),)


def test_a_monorepo_subdirectory_is_part_of_its_repository(home: Home) -> None:
    """Until somebody binds it, every directory belongs to the repository's project."""
    home.repository()
    web = home.folder("src/app/web")
    ledger = Ledger({"example.org/team/app": "ns_app"}, {})

    assert resolve(discover(web, home.path), ledger) == Match("ns_app", "remote")


def test_a_bound_monorepo_subdirectory_wins_over_the_remote(home: Home) -> None:
    """An alias inside the repository covers what lies below it; its neighbours stay with the repository."""
    app = home.repository()
    ui, docs = home.folder("src/app/web/ui"), home.folder("src/app/docs")
    ledger = Ledger({"example.org/team/app": "ns_app"}, {app / "web": "ns_web", app: "ns_root"})

    matches = [resolve(discover(place, home.path), ledger) for place in (ui, docs, app)]

    assert matches == [Match("ns_web", "alias"), Match("ns_app", "remote"), Match("ns_app", "remote")]


def test_origin_wins_over_other_remotes(home: Home) -> None:
    """A fork's owner has an upstream as well; the project is what ``origin`` says."""
    app = home.repository(origin=None)
    home.git("remote", "add", "fork", OTHER, at=app)
    home.git("remote", "add", "origin", APP, at=app)

    assert home.remote(app) == "example.org/team/app"


def test_a_sole_remote_counts_whatever_its_name(home: Home) -> None:
    """Nothing competes with it."""
    app = home.repository(origin=None)
    home.git("remote", "add", "upstream", APP, at=app)

    assert home.remote(app) == "example.org/team/app"


def test_two_remotes_without_origin_are_ambiguous(home: Home) -> None:
    """Both are listed; naming one of them origin settles it."""
    app = home.repository(origin=None)
    home.git("remote", "add", "a", APP, at=app)
    home.git("remote", "add", "b", OTHER, at=app)

    with pytest.raises(NamespaceError, match=r"a \(example.org/team/app\), b \(example.org/someone/else\)"):
        resolve(discover(app, home.path), Ledger({"example.org/team/app": "ns_app"}, {}))

    home.git("remote", "rename", "a", "origin", at=app)
    assert home.remote(app) == "example.org/team/app"


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_path_remote_counts_as_none(home: Home, scheme: str) -> None:
    """A clone of a local directory is known by its own path only, and says so."""
    app = home.repository(origin=None)
    home.git("clone", "--quiet", f"{scheme}{app}", "copy")
    copy = home.path / "copy"

    hints = discover(copy, home.path)

    assert [name for name, _ in hints.remotes] == ["origin"]
    assert resolve(hints, Ledger({}, {copy: "ns_copy"})) == Match("ns_copy", "alias")
    assert resolve(hints, Ledger({}, {app: "ns_app"})) is None
    assert "no remote with a host" in unresolved(hints).message


@pytest.mark.parametrize("where", ["--local", "--global"])
def test_instead_of_is_not_followed(home: Home, where: str) -> None:
    """By the repository's configuration or the user's, git rewrites the remote; the raw one counts."""
    app = home.repository()
    home.git("config", where, f"url.{OTHER}.insteadOf", APP, at=app)

    assert home.git("remote", "get-url", "origin", at=app).strip() == OTHER
    assert home.remote(app) == "example.org/team/app"


def test_includes_are_not_followed(home: Home) -> None:
    """The real git reads the included file, which may be a tracked one; its remotes select nothing."""
    app = home.repository(origin=None)
    (app / "tracked").write_text(f'[remote "origin"]\n\turl = {OTHER}\n')
    home.git("config", "include.path", "../tracked", at=app)

    assert home.git("remote", "get-url", "origin", at=app).strip() == OTHER
    assert home.remote(app) is None


def test_an_inherited_git_dir_is_ignored(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside a hook of one repository, git answers for that one; the working directory decides here."""
    app, lib = home.repository(), home.repository("src/lib", origin=LIB)
    inherited = {"GIT_DIR": str(app / ".git"), "GIT_WORK_TREE": str(app), "GIT_COMMON_DIR": str(app / ".git")}
    for name, value in inherited.items():
        monkeypatch.setenv(name, value)
    home.environment.update(inherited)

    assert home.git("remote", "get-url", "origin", at=lib).strip() == APP
    assert home.remote(lib) == "example.org/team/lib"


def test_another_users_checkout_is_read(home: Home) -> None:
    """The real git refuses what somebody else owns, as in most containers; the remote is still known."""
    app = home.repository()
    home.environment["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"
    if os.geteuid() == 0:
        del home.environment["GIT_TEST_ASSUME_DIFFERENT_OWNER"]
        for path in (app, *app.rglob("*")):
            os.chown(path, 12345, 12345)

    assert "dubious ownership" in home.git("remote", "get-url", "origin", at=app, check=False)
    assert home.remote(app) == "example.org/team/app"


def test_a_dotfiles_repository_in_home_does_not_count(home: Home) -> None:
    """It would claim every directory of the user; a repository below home counts as ever."""
    home.repository(".", origin=OTHER)
    app = home.repository()
    notes = home.folder("notes")

    places = [notes, home.path / ".git", home.path / ".git" / "hooks"]

    assert [discover(place, home.path).remotes for place in places] == [(), (), ()]
    assert discover(notes, home.path).paths == (str(notes),)
    assert home.remote(app) == "example.org/team/app"


def test_without_a_repository_the_directories_can_be_aliased(home: Home) -> None:
    """A folder that somebody bound is a project, for what lies below it too; any other says why not."""
    notes = home.folder("work/notes")

    hints = discover(notes, home.path)

    assert hints.paths == (str(notes), str(notes.parent))
    assert resolve(hints, Ledger({}, {notes.parent: "ns_work"})) == Match("ns_work", "alias")
    assert resolve(hints, Ledger({}, {home.path: "ns_home"})) is None
    assert f"no repository at {notes} or above" in unresolved(hints).message


def test_home_gives_no_hints(home: Home) -> None:
    """Some hosts start in the home directory; neither its repository nor an alias of it is meant."""
    home.repository(".", origin=APP)

    hints = discover(home.path, home.path)

    assert (hints.remotes, hints.inside, hints.paths) == ((), (), ())
    assert resolve(hints, Ledger({}, {home.path: "ns_home"})) is None
    assert "the working directory is the home directory" in unresolved(hints).message


def test_the_root_gives_no_hints(home: Home) -> None:
    """Some hosts start at ``/``, which says nothing."""
    hints = discover(Path("/"), home.path)

    assert (hints.remotes, hints.inside, hints.paths) == ((), (), ())
    assert resolve(hints, Ledger({}, {Path("/"): "ns_root"})) is None
    assert "root of the file system" in unresolved(hints).message


def test_a_home_inside_the_project_does_not_hide_it(home: Home) -> None:
    """Containers put a home below the checkout; only home itself is left out, not what encloses it."""
    app = home.repository()

    assert choose_remote(discover(app, home.folder("src/app/.home")).remotes) == "example.org/team/app"


def _malformed(config: Path) -> None:
    with config.open("a") as file:
        file.write('[remote "origin\n')


def _zero_byte(config: Path) -> None:
    config.write_bytes(config.read_bytes() + b"\0")


def _without_value(config: Path) -> None:
    config.write_text('[remote "origin"]\n\turl\n')


def _directory(config: Path) -> None:
    config.unlink()
    config.mkdir()


def _pipe(config: Path) -> None:
    config.unlink()
    os.mkfifo(config)


def _loop(config: Path) -> None:
    config.unlink()
    config.symlink_to(config)


def _oversized(config: Path) -> None:
    with config.open("a") as file:
        file.write(";" * projects.MAX_GIT_FILE_BYTES)


@pytest.mark.parametrize(
    "damage", [_malformed, _zero_byte, _without_value, _directory, _pipe, _loop, _oversized, Path.unlink]
)
def test_an_unreadable_config_is_an_error(home: Home, damage: Callable[[Path], None]) -> None:
    """Whatever is wrong with it, the file is named, and nobody concludes that there is no remote."""
    app = home.repository()
    assert home.remote(app) == "example.org/team/app"

    damage(app / ".git" / "config")

    with pytest.raises(NamespaceError) as refusal:
        discover(app, home.path)
    assert str(app / ".git" / "config") in refusal.value.message
    assert refusal.value.hint


@pytest.mark.parametrize("text", ["gitdir: ../nowhere\n", "gitdir: \x1b[2J\n", "../app/.git\n", "", "gitdir:\n"])
def test_a_git_file_that_points_nowhere_is_an_error(home: Home, text: str) -> None:
    """The ``.git`` file is named, in characters that are safe to show."""
    home.repository()
    copy = home.folder("src/copy")
    (copy / ".git").write_text("gitdir: ../app/.git\n")
    assert home.remote(copy) == "example.org/team/app"

    (copy / ".git").write_text(text)

    with pytest.raises(NamespaceError) as refusal:
        discover(copy, home.path)
    assert str(copy / ".git") in refusal.value.message
    assert refusal.value.message.isprintable()


def test_a_dangling_git_link_is_an_error(home: Home) -> None:
    """A ``.git`` that leads nowhere is damage, not the absence of a repository."""
    copy = home.folder("src/copy")
    (copy / ".git").symlink_to(home.path / "nowhere")

    with pytest.raises(NamespaceError, match="cannot read"):
        discover(copy, home.path)


def test_a_place_that_may_not_be_searched_is_an_error(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where permission is missing, a repository may be; root is never refused, so the refusal is staged."""
    app = home.repository()

    def refuse(path: Path) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "lstat", refuse)

    with pytest.raises(NamespaceError, match="Permission denied") as refusal:
        discover(app, home.path)
    assert str(app / ".git") in refusal.value.message


def test_a_working_directory_that_is_gone_is_an_error(home: Home) -> None:
    """A shell may outlive its directory."""
    with pytest.raises(NamespaceError, match=r"cannot read .*gone"):
        discover(home.path / "gone", home.path)


@pytest.mark.parametrize("forged", ["file", "link", "commondir", "worktree"])
def test_a_forged_git_entry_does_not_take_over_a_path(home: Home, forged: str) -> None:
    """An unpacked archive can point at any repository; that one's path alias stays its own."""
    app = home.repository(origin=None)
    home.git("worktree", "add", "--quiet", str(home.path / "fix"), at=app)
    archive = home.folder("downloads/archive")
    entry = archive / ".git"
    match forged:
        case "file":
            entry.write_text(f"gitdir: {app}/.git\n")
        case "link":
            entry.symlink_to(app / ".git")
        case "commondir":
            entry.mkdir()
            (entry / "commondir").write_text(f"{app}/.git\n")
            (entry / "gitdir").write_text(f"{entry}\n")
        case _:
            entry.write_text(f"gitdir: {app}/.git/worktrees/fix\n")
    ledger = Ledger({}, {app: "ns_app"})

    assert resolve(discover(home.path / "fix", home.path), ledger) == Match("ns_app", "alias")
    hints = discover(archive, home.path)
    assert resolve(hints, ledger) is None
    assert "no remote" in unresolved(hints).message


def test_a_moved_worktree_keeps_the_remote(home: Home) -> None:
    """Its repository no longer lists the place, so only the path alias is lost, as with any copy."""
    app = home.repository()
    home.git("worktree", "add", "--quiet", str(home.path / "fix"), at=app)
    moved = (home.path / "fix").rename(home.path / "moved")

    hints = discover(moved, home.path)

    assert choose_remote(hints.remotes) == "example.org/team/app"
    assert hints.paths == (str(moved),)


def test_a_separate_git_directory_is_followed(home: Home) -> None:
    """The checkout keeps its own root; the remote comes from where its configuration lies."""
    home.git("init", "--quiet", f"--separate-git-dir={home.path / 'store'}", "app")
    home.git("remote", "add", "origin", APP, at=home.path / "app")

    hints = discover(home.path / "app", home.path)

    assert choose_remote(hints.remotes) == "example.org/team/app"
    assert hints.paths == (str(home.path / "app"),)


def test_a_path_that_is_no_unicode_cannot_be_aliased() -> None:
    """The ledger holds Unicode only; the directories around it, in whatever script, still count."""
    assert projects._texts([Path("/src/\udcff"), Path("/src/café\u3000")]) == ("/src/café\u3000",)


@pytest.mark.parametrize(
    "config",
    [
        '[remote "origin"]\n\turl = git@example.org:team/app.git\n\turl = https://example.org/second\n',
        '[remote "origin"]\n[core]\n[remote "origin"] URL=git@example.org:team/app.git',
        '\ufeff[ReMoTe\t"origin"]\r\n  Url = "git@example.org:team/app.git" ; where\r\n',
        '# note\n[remote "origin"]url = git@example.org:\\\nteam/"app".git # there\n; end',
        "[remote.Origin]\nurl = git@example.org:team/app.git\\\n",
        '[remote "ori\\gin"]\npushurl = /x\nurl = git@example.org:team/app.git',
        '[user]\n\tname = Andr\udce9 \\"Q\\" # ?\n[remote "origin"]\nurl=git@example.org:team/app.git\n',
    ],
)
def test_every_way_to_write_a_remote_is_read(home: Home, config: str) -> None:
    """Case, quotes, escapes, comments, continuations, old sections, a byte order mark; first url counts."""
    app = home.repository()
    (app / ".git" / "config").write_bytes(os.fsencode(config))

    assert discover(app, home.path).remotes[0] == ("origin", APP)


PIECES = (
    *("[remote ", "[", '"a"', '"', "]", '[remote "a"]', '[remote "b\\"]c"]\n', "[remote.X]", "[core]", "\n"),
    *("\r\n", "url", "URL = ", "=", " ", "\t", "x", "y z", "\\", "\\n", '\\"', "\\\\", "\\\n", "#", ";", "é"),
    *('\nurl = "', "\nurl = ", "fetch", "-", ".", "1"),
)
VALUE_PIECES = (*'xy \t"\\#;=\r', '" "', "\\n", '\\"', "\\\\", "\\\n", "\n[core]\n")


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
    | st.lists(st.sampled_from(VALUE_PIECES), max_size=10).map("".join).map('[remote "a"]\nurl ={}'.format)
)
@example('[remote "a"]\nurl = "" x\\\n  "  y "  # z')
@example('[remote "a"]\nurl = x # \\\nurl = y')
@example("[remote.a]url=x\\")
def test_git_reads_the_same_remotes(config: str) -> None:
    """The real git is the judge of the format: what it refuses is refused, what it reads is read alike."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "config")
        file.write_text(config, newline="")
        judge = subprocess.run(
            ["git", "config", "--file", file, "--null", "--list"],
            env={"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": folder},
            cwd=folder,
            capture_output=True,
            check=False,
        )
        try:
            remotes = dict(read_remotes(file))
        except NamespaceError:
            remotes = None

    listed = [entry.partition("\n") for entry in judge.stdout.decode().split("\0")]
    urls = [(re.fullmatch(r"remote\.(.*)\.url", key), equals, value) for key, equals, value in listed]
    refused = judge.returncode != 0 or any(name and not equals for name, equals, _ in urls)
    first = {name[1]: value for name, _, value in reversed(urls) if name}
    assert _blanked(remotes) == (None if refused else _blanked(first))


def _blanked(remotes: dict[str, str] | None) -> dict[str, str] | None:
    # Before 2.45, git turned every blank inside a value into a space.
    return remotes and {name: re.sub(r"[\t\r]", " ", value) for name, value in remotes.items()}

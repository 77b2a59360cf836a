import gzip
import io
import os
import stat
import tarfile
import tempfile
import warnings
import zipfile
from pathlib import Path

import pytest

from keras_elmo.checkpoints import archive
from keras_elmo.checkpoints.archive import unpacked

FILES = {"options.json": b'{"lstm": {}}', "model.hdf5": os.urandom(3000), "vocab.txt": b"a\nb\n"}


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Where everything is unpacked; after every test nothing may be left there."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def write_zip(tmp_path):
    def write(files, name="weights.zip", compression=zipfile.ZIP_DEFLATED):
        with (
            warnings.catch_warnings(),
            zipfile.ZipFile(tmp_path / name, "w", compression) as zipped,
        ):
            warnings.simplefilter("ignore")  # the same name twice
            for info, content in files:
                zipped.writestr(info, content)
        return tmp_path / name

    return write


@pytest.fixture
def write_tar(tmp_path):
    def write(members, name="weights.tar.gz", mode="w:gz", format=tarfile.PAX_FORMAT):
        with tarfile.open(tmp_path / name, mode, format=format) as tar:
            for info, content in members:
                info = tarfile.TarInfo(info) if isinstance(info, str) else info
                info.size = info.size or len(content)
                tar.addfile(info, io.BytesIO(content))
        return tmp_path / name

    return write


@pytest.fixture(params=["zip", "tar.gz", "tar"])
def write_any(request, write_zip, write_tar):
    def write(files, name="weights.bin"):
        if request.param == "zip":
            return write_zip(files, name)
        return write_tar(files, name, "w:gz" if request.param == "tar.gz" else "w")

    return write


def link(name, target, type=tarfile.SYMTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = type, target
    return info


def zip_entry(name, mode):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def refused(path, *words):
    """Unpacks in vain; `words` must follow each other in the sentence after the archive's name."""
    pattern = rf"`path` must be .* Received: path='[^']*{path.name}', " + ".*".join(["", *words])
    with pytest.raises(ValueError, match=pattern), unpacked(path):
        pytest.fail("unpacked")


# What works


def test_folder_is_yielded_as_it_is(tmp_path):
    (tmp_path / "weights" / "inner").mkdir(parents=True)
    with unpacked(tmp_path / "weights") as folder:
        assert folder == tmp_path / "weights"
    assert folder.exists()


@pytest.mark.parametrize("prefix", ["", "./", "158/", "./158/"])
def test_files_at_the_root_or_in_one_folder(write_any, temporary, prefix):
    path = write_any([(prefix + name, content) for name, content in FILES.items()])
    with unpacked(str(path)) as folder:
        assert contents(folder) == FILES
        assert temporary in folder.parents
        assert folder.name == "158" or "158" not in prefix
    assert not folder.exists()


def test_folders_and_litter(write_any):
    names = ["__MACOSX/158/._model.hdf5", ".DS_Store", "158/model.hdf5", "158/inner/readme"]
    path = write_any([(name, b"x") for name in names])
    with unpacked(path) as folder:
        assert contents(folder) == {"model.hdf5": b"x", "inner/readme": b"x"}


def test_folder_members(write_zip, write_tar):
    directory = tarfile.TarInfo("158")
    directory.type, directory.mode = tarfile.DIRTYPE, 0
    tar = write_tar([(directory, b""), ("158/model.hdf5", b"x")])
    entry = zip_entry("158/", stat.S_IFDIR)
    for path in (tar, write_zip([(entry, b""), ("158/model.hdf5", b"x")])):
        with unpacked(path) as folder:
            assert contents(folder) == {"model.hdf5": b"x"}


def test_two_folders_stay_together(write_any):
    path = write_any([("a/options.json", b"1"), ("b/options.json", b"2")])
    with unpacked(path) as folder:
        assert contents(folder) == {"a/options.json": b"1", "b/options.json": b"2"}


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_in_every_tar_format(write_tar, format):
    name = "n" * 90 + "/" + "ü" * 45
    with unpacked(write_tar([(name, b"x"), ("other", b"y")], format=format)) as folder:
        assert contents(folder) == {name: b"x", "other": b"y"}


@pytest.mark.parametrize(
    "compression", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=str
)
def test_zip_compressions(write_zip, compression):
    with unpacked(write_zip(FILES.items(), compression=compression)) as folder:
        assert contents(folder) == FILES


def test_an_error_in_the_block_is_passed_on_and_all_is_removed(write_any):
    with pytest.raises(KeyError, match="mine"), unpacked(write_any(FILES.items())) as folder:
        raise KeyError("mine")
    assert not folder.exists()


# What is no archive


def test_missing_path(tmp_path):
    refused(tmp_path / "missing.zip", "which does not exist. Check the spelling.")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "which is not a regular file")


def test_unreadable_file(write_zip, monkeypatch):
    path = write_zip(FILES.items())

    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    refused(path, "which may not be read")


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"\x89HDF\r\n\x1a\n" + bytes(2000), gzip.compress(b"text" * 500)],
    ids=["empty", "zip magic", "HDF5", "gzip of text"],
)
def test_other_files(tmp_path, content):
    (tmp_path / "weights.zip").write_bytes(content)
    refused(tmp_path / "weights.zip", "which is none of these")


def test_empty_archives(write_any):
    refused(write_any([]), "which holds no file")


def test_archive_of_folders_only(write_zip):
    refused(write_zip([(zip_entry("158/", stat.S_IFDIR), b"")]), "which holds no file")


# Bad names and kinds


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../evil", "leads out of the folder"),
        ("158/../../evil", "leads out of the folder"),
        ("158/..", "leads out of the folder"),
        ("/etc/evil", "has an absolute name"),
        ("//server/share/evil", "has an absolute name"),
        ("C:/evil", "has an absolute name"),
        ("c:evil", "has an absolute name"),
        ("..\\evil", "is not named by a plain relative path"),
        ("158\\model.hdf5", "is not named by a plain relative path"),
        ("\\\\server\\share\\evil", "has an absolute name"),
        ("n" * 300, "cannot be created"),
    ],
)
def test_bad_names(write_any, tmp_path, name, problem):
    path = write_any([("options.json", b"{}"), (name, b"evil")])
    refused(path, "whose member '", problem)
    assert not list(tmp_path.rglob("*evil*"))


def test_zero_byte_in_a_zip_name(write_zip):
    path = write_zip([("model.hdf5!/../evil", b"x")])
    path.write_bytes(path.read_bytes().replace(b"hdf5!", b"hdf5\0"))
    refused(path, r"whose member 'model.hdf5\\x00/../evil' leads out")
    path = write_zip([("model!hdf5", b"x")])
    path.write_bytes(path.read_bytes().replace(b"model!", b"model\0"))
    refused(path, r"whose member 'model\\x00hdf5' is not named by a plain relative path")


@pytest.mark.parametrize("names", [("a", "a"), ("a", "./a"), ("a", "a/b"), ("a/b", "a")])
def test_colliding_names(write_any, names):
    refused(write_any([(name, b"x") for name in names]), f"'{names[1]}' has a name that an earlier")


@pytest.mark.parametrize(
    ("info", "kind"),
    [
        (link("evil", "/etc/passwd"), "is a link"),
        (link("evil", "options.json"), "is a link"),
        (link("evil", "options.json", tarfile.LNKTYPE), "is a link"),
        (link("evil", "", tarfile.FIFOTYPE), "is a device or a pipe"),
        (link("evil", "", tarfile.CHRTYPE), "is a device or a pipe"),
        (link("evil", "", tarfile.BLKTYPE), "is a device or a pipe"),
    ],
)
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_links_and_devices_in_tar(write_tar, info, kind, mode):
    path = write_tar([("options.json", b"{}"), (info, b"")], mode=mode)
    refused(path, f"whose member 'evil' {kind}")


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        (stat.S_IFLNK | 0o777, "is a link"),
        (stat.S_IFIFO, "is a device or a pipe"),
        (stat.S_IFCHR, "is a device or a pipe"),
    ],
)
def test_links_and_devices_in_zip(write_zip, mode, kind):
    path = write_zip([("options.json", b"{}"), (zip_entry("evil", mode), b"/etc/passwd")])
    refused(path, f"whose member 'evil' {kind}")


def test_link_that_a_later_member_would_follow(write_tar, tmp_path):
    path = write_tar([(link("158", str(tmp_path)), b""), ("158/evil", b"x")])
    refused(path, "whose member '158' is a link")
    assert not (tmp_path / "evil").exists()


def test_encrypted_zip(write_zip):
    path = write_zip([("model.hdf5", b"x" * 50)])
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    refused(path, "whose member 'model.hdf5' is encrypted")


def test_zip_packed_in_an_unknown_way(write_zip):
    path = write_zip([("model.hdf5", b"x" * 50)])
    content = bytearray(path.read_bytes())
    content[8] = content[content.index(b"PK\x01\x02") + 10] = 9  # Deflate64
    path.write_bytes(content)
    refused(path, "whose member 'model.hdf5' is packed in a way that Python cannot read")


# Too large


@pytest.fixture
def count_written(monkeypatch):
    """The number of bytes that were written into members, refused ones too."""
    sizes = []
    extract = archive._extract

    def counting(member, folder, budget):
        try:
            return extract(member, folder, budget)
        finally:
            sizes[:] = [len(content) for content in contents(folder).values()]

    monkeypatch.setattr(archive, "_extract", counting)
    return lambda: sum(sizes)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_real_bomb(write_zip, write_tar, count_written, kind):
    members = [("options.json", b"{}"), ("model.hdf5", bytes(20_000_000))]
    path = write_zip(members) if kind == "zip" else write_tar(members)
    assert path.stat().st_size * 100 < 20_000_000
    refused(path, "whose member 'model.hdf5' goes beyond .* 8 GiB and 100 times the size")
    assert count_written() == len("{}")


def test_many_members_count_together(write_any, monkeypatch):
    members = [(str(index), os.urandom(1000)) for index in range(10)]
    path = write_any(members)
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 10_000)
    with unpacked(path) as folder:
        assert contents(folder) == dict(members)
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 9_999)
    refused(path, "whose member '9' goes beyond")


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_ratio_is_that_of_the_whole_archive(write_zip, write_tar, monkeypatch, kind):
    members = [("noise", os.urandom(50_000)), ("zeros", bytes(50_000))]
    path = write_zip(members) if kind == "zip" else write_tar(members)
    monkeypatch.setattr(archive, "MAX_RATIO", 2)
    with unpacked(path):
        pass
    monkeypatch.setattr(archive, "MAX_RATIO", 1)
    refused(path, "whose member 'zeros' goes beyond .* 1 times")


def test_overlapping_members_of_a_zip(write_zip, tmp_path):
    """One packed megabyte, listed 300 times."""
    path = write_zip([("0", bytes(1_000_000))])
    content = path.read_bytes()
    start = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    listed = content[start:end] * 300
    tail = bytearray(content[end:])
    tail[8:12] = (300).to_bytes(2, "little") * 2
    tail[12:16] = len(listed).to_bytes(4, "little")
    path.write_bytes(content[:start] + listed + tail)
    refused(path, "whose member '0' ")


def test_zip_header_that_lies_about_the_size(write_zip, count_written):
    path = write_zip([("model.hdf5", bytes(20_000_000))])
    content = bytearray(path.read_bytes())
    position = content.index(b"PK\x01\x02") + 24
    content[position : position + 4] = (1000).to_bytes(4, "little")
    path.write_bytes(content)
    refused(path, "whose member 'model.hdf5' is here .* cut short or damaged")
    assert count_written() <= 1000


def test_reader_that_gives_more_than_the_header_says(tmp_path, monkeypatch, count_written):
    """The last line of defence, for what neither `zipfile` nor `tarfile` is known to do."""
    (tmp_path / "weights.zip").write_bytes(b"x" * 1000)
    member = archive._Member("model.hdf5", "file", 10, lambda: io.BytesIO(bytes(5_000_000)))
    monkeypatch.setattr(archive, "_members", lambda file, limit: iter([member]))
    refused(tmp_path / "weights.zip", "whose member 'model.hdf5' goes beyond")
    assert count_written() <= 100 * 1000


def test_sparse_tar_member(write_tar):
    """A few bytes that stand for two gigabytes of holes."""
    info = tarfile.TarInfo("model.hdf5")
    info.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.size": str(2**31),
        "GNU.sparse.map": "0,3",
    }
    refused(write_tar([(info, b"abc")]), "whose member 'model.hdf5' goes beyond")


@pytest.mark.parametrize("filler", [b"\0", b"x"])
def test_bomb_behind_the_end_of_a_tar(write_tar, filler):
    path = write_tar([("options.json", b"{}")], "plain.tar", "w")
    bomb = path.with_name("weights.tar.gz")
    bomb.write_bytes(gzip.compress(path.read_bytes() + filler * 50_000_000))
    refused(bomb, "whose member 'options.json' goes beyond")


def test_bomb_of_tar_headers(write_tar):
    path = write_tar([(link("158", "", tarfile.DIRTYPE), b"") for _ in range(5000)])
    refused(path, "whose member '158' goes beyond")


@pytest.mark.parametrize("type", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_long_name_that_would_fill_the_memory(write_tar, type):
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = type, 2**21
    noise = os.urandom(2**21)
    refused(write_tar([(header, noise), ("a", b"x")]), "damaged .a header of 2097152 bytes")


# Cut short and damaged


def test_every_cut_is_noticed(write_any):
    path = write_any([("options.json", b"{}"), ("model.hdf5", os.urandom(2000))])
    content = path.read_bytes()
    # A plain tar is whole with the first block of its end mark; the rest is padding.
    end = len(content) if len(content) < 5000 else 512 + 512 + 512 + 2048 + 512
    for length in [*range(600, end, 97), 1024, 1536, end - 1]:
        path.write_bytes(content[:length])
        refused(path, "cut short or damaged")


def test_flipped_bits_never_give_wrong_bytes(write_zip, write_tar):
    files = {"options.json": b"{}", "model.hdf5": os.urandom(200)}
    for path in (write_zip(files.items()), write_tar(files.items())):
        content = path.read_bytes()
        for position in range(len(content)):
            damaged = bytearray(content)
            damaged[position] ^= 1 << position % 8
            path.write_bytes(damaged)
            try:
                with unpacked(path) as folder:
                    found = contents(folder)
            except ValueError as error:
                assert "`path` must be a folder or a sound .zip" in str(error)  # noqa: PT017
            else:
                assert set(found.values()) <= set(files.values())


def test_damaged_header_is_not_taken_for_the_end(write_tar):
    path = write_tar([("options.json", b"{}"), ("model.hdf5", b"x")], mode="w")
    content = bytearray(path.read_bytes())
    content[content.index(b"model.hdf5")] ^= 1
    path.write_bytes(content)
    refused(path, "whose member 'options.json' is here or in what follows cut short or damaged")


def test_tar_cut_between_two_members(write_tar):
    path = write_tar([("options.json", b"{}"), ("model.hdf5", b"x")], mode="w")
    content = path.read_bytes()
    path.write_bytes(content[:1024])
    refused(path, "options.json.*cut short or damaged")
    path.write_bytes(content[:1024] + content[1024:1400])
    refused(path, "options.json.*cut short or damaged")


def test_gzip_checksum_is_read(write_tar):
    path = write_tar(FILES.items())
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    refused(path, "cut short or damaged .CRC check failed")


def test_full_disk_is_not_called_damage(write_zip, monkeypatch):
    path = write_zip(FILES.items())

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive, "_extract", fail)
    with pytest.raises(OSError, match="No space left"), unpacked(path):
        pass

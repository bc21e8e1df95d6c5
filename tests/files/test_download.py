"""get_file against a server of this process."""

import gzip
import hashlib
import io
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pydtconv.files.reading import BadFileError
from pydtconv.utils import get_file
from tests.traced import memory_below


@pytest.fixture
def server():
    """A server on loopback: its `files` by path, and the `requests` that came."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.requests.append(self.path)
            data = self.server.files.get(self.path)
            if data is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(data) + self.server.missing_bytes))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.files, server.requests, server.missing_bytes = {}, [], 0
        server.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    return tmp_path / "datasets"


def contents(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file()) if folder.exists() else []


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_a_file_is_downloaded_once(server, cache, algorithm):
    server.files["/numbers.bin"] = b"123"
    digest = hashlib.new(algorithm, b"123").hexdigest()
    for _ in range(2):
        path = get_file(origin=f"{server.url}/numbers.bin", file_hash=digest)
        assert path == str(cache / "numbers.bin")
    assert (cache / "numbers.bin").read_bytes() == b"123"
    assert server.requests == ["/numbers.bin"]
    get_file(origin=f"{server.url}/numbers.bin", force_download=True)
    assert len(server.requests) == 2


def test_a_cached_file_with_another_digest_is_replaced(server, cache):
    cache.mkdir()
    (cache / "numbers.bin").write_bytes(b"old")
    server.files["/numbers.bin"] = b"new"
    get_file("numbers.bin", f"{server.url}/numbers.bin", file_hash=hashlib.sha256(b"new").hexdigest())
    assert (cache / "numbers.bin").read_bytes() == b"new"


def test_a_download_with_another_digest_leaves_nothing(server, cache):
    server.files["/numbers.bin"] = b"123"
    with pytest.raises(ValueError, match=f"expected a file with sha256 {'0' * 64}"):
        get_file(origin=f"{server.url}/numbers.bin", file_hash="0" * 64)
    assert contents(cache) == []


def test_a_download_that_breaks_off_leaves_nothing(server, cache):
    server.files["/numbers.bin"] = b"123"
    server.missing_bytes = 5
    with pytest.raises(OSError, match="3 of 8 bytes"):
        get_file(origin=f"{server.url}/numbers.bin")
    assert contents(cache) == []


def test_a_missing_page_is_named(server, cache):
    with pytest.raises(OSError, match=r"could not download http://127\.0\.0\.1:\d+/nothing: Not Found"):
        get_file(origin=f"{server.url}/nothing")


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_an_archive_is_unpacked(server, cache, kind):
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("inner/a.txt", "hello")
    else:
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            member = tarfile.TarInfo("inner/a.txt")
            member.size = 5
            archive.addfile(member, io.BytesIO(b"hello"))
    server.files["/data"] = buffer.getvalue()
    for _ in range(2):
        folder = get_file("unpacked", f"{server.url}/data", extract=True)
    assert folder == str(cache / "unpacked")
    assert (cache / "unpacked" / "inner" / "a.txt").read_text() == "hello"
    assert contents(cache) == ["a.txt"]
    assert len(server.requests) == 1


def test_an_archive_may_not_write_elsewhere(server, cache):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("../escaped.txt"))
    server.files["/data"] = buffer.getvalue()
    with pytest.raises(ValueError, match=r"'\.\./escaped\.txt', which is no file or folder inside"):
        get_file("unpacked", f"{server.url}/data", extract=True)
    assert not (cache / "escaped.txt").exists()
    assert not (cache / "unpacked").exists()


def tar_of(*members):
    """A compressed tar of (name, type, size, data)."""
    buffer = io.BytesIO()
    with gzip.open(buffer, "wb") as file:
        for name, kind, size, data in members:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, size
            file.write(member.tobuf(tarfile.GNU_FORMAT) + data)
    return buffer.getvalue()


def zip_of(size):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(size))
    return buffer.getvalue()


BOMBS = {
    "tar": tar_of(("zeros", tarfile.REGTYPE, 1 << 22, bytes(1 << 22))),
    "many members": tar_of(*[(f"{i}", tarfile.REGTYPE, 0, b"") for i in range(1 << 12)]),
    "a long name": tar_of(("name", tarfile.GNUTYPE_LONGNAME, 1 << 22, bytes(1 << 22)), ("a", b"0", 0, b"")),
    "a header of attributes": tar_of(("name", tarfile.XHDTYPE, 1 << 22, bytes(1 << 22)), ("a", b"0", 0, b"")),
    "zip": zip_of(1 << 22),
}


@pytest.mark.parametrize("data", BOMBS.values(), ids=BOMBS)
def test_an_archive_may_not_unpack_to_any_size(server, cache, data, monkeypatch):
    monkeypatch.setattr("pydtconv.files.reading.FREE_BYTES", 1 << 20)
    server.files["/data"] = data
    with (
        memory_below(1 << 21),
        pytest.raises(BadFileError, match=r"unpacked\.archive: expected an archive of \d+ bytes"),
    ):
        get_file("unpacked", f"{server.url}/data", extract=True)
    assert contents(cache) == []


@pytest.mark.parametrize("data", [BOMBS["tar"], BOMBS["zip"]], ids=["tar", "zip"])
def test_an_archive_whose_digest_is_known_may(server, cache, data, monkeypatch):
    monkeypatch.setattr("pydtconv.files.reading.FREE_BYTES", 1 << 20)
    server.files["/data"] = data
    get_file("unpacked", f"{server.url}/data", extract=True, file_hash=hashlib.sha256(data).hexdigest())
    assert (cache / "unpacked" / "zeros").stat().st_size == 1 << 22


@pytest.mark.parametrize("data", [b"text", BOMBS["tar"][:-200], BOMBS["zip"][:-20], b"PK", b""])
def test_what_is_no_archive_leaves_nothing(server, cache, data):
    server.files["/data"] = data
    with pytest.raises(BadFileError, match=r"unpacked\.archive: expected a tar or zip archive"):
        get_file("unpacked", f"{server.url}/data", extract=True)
    assert contents(cache) == []


@pytest.mark.parametrize("extract", [False, True])
@pytest.mark.parametrize("fname", ["../x", "../../x", "/tmp/x", "a/b", "..", ".", "a\0b"])
def test_a_name_does_not_lead_out_of_the_cache(server, cache, fname, extract):
    server.files["/data"] = b"text"
    with pytest.raises(ValueError, match="fname: expected the name of a file, without a folder"):
        get_file(fname, f"{server.url}/data", extract=extract)
    assert not server.requests


@pytest.mark.parametrize("path", ["/", "/..", "/a/%2e%2e", "/a/?b=/../x"])
def test_a_name_from_an_address_does_not_either(server, cache, path):
    with pytest.raises(ValueError, match="fname: expected the name of a file"):
        get_file(origin=f"{server.url}{path}")
    assert not server.requests


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "origin to be a URL"),
        ({"origin": "http://127.0.0.1/x", "hash_algorithm": "sha1", "file_hash": "0"}, "hash_algorithm"),
        ({"origin": "http://127.0.0.1/x", "archive_format": "rar"}, "archive_format"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        get_file(**arguments)

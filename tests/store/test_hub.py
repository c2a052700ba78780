"""Models of the hub: a revision made a commit, records checked and kept, and refusals told."""

import hashlib
import json
import time
import urllib.error
import urllib.request

import pytest
import yaml
from click.testing import CliRunner

from dragoman.cli.models import command
from dragoman.errors import DragomanError
from dragoman.store import catalogue, download, find, get, shelf

from .hub_server import FakeHub, Refusal, git_name, sha256

LANGUAGES = ["<|en|>", "<|zh|>", "<|de|>"]
WORDS = ["a", "b", "<|endoftext|>", "<|startoftranscript|>", *LANGUAGES, "<|translate|>"]
WEIGHTS = bytes(range(256)) * 1000
MODEL = {
    "model.bin": WEIGHTS,
    "config.json": b'{"lang_ids": [4, 5, 6]}',
    "tokenizer.json": b"{}",
    "vocabulary.txt": "\n".join(WORDS).encode(),
}
FOREIGN = {
    "README.md": b"# read me",
    ".gitattributes": b"*.bin filter=lfs",
    "model.py": b"raise SystemExit('this must never run')",
    "pytorch_model.bin": b"\x80\x04pickle",
    "weights.pkl": b"\x80\x04pickle",
    "model.safetensors": b"other",
    "onnx/model.bin": b"elsewhere",
    "../model.bin": b"outside",
}
TOY = "hub:team/toy"


@pytest.fixture
def fake(monkeypatch):
    fake = FakeHub()
    monkeypatch.setenv("HF_ENDPOINT", fake.hub)
    yield fake
    fake.close()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def kept(home, stem="hub--team--toy"):
    return yaml.safe_load((home / "entries" / f"{stem}.yaml").read_text())


def refused(name=TOY):
    with pytest.raises(DragomanError) as caught:
        get(name)
    return str(caught.value)


def test_only_what_a_model_needs_is_fetched(fake, home):
    fake.add("team/toy", MODEL | FOREIGN)
    folder = get(TOY)
    assert folder == home / "models" / "hub--team--toy" == find(TOY)
    assert contents(folder) == MODEL
    resolved = {path.rsplit("/", 1)[1] for path in fake.paths() if "/resolve/" in path}
    assert resolved == set(MODEL)
    assert not (home / "partial" / "hub--team--toy").exists()


def test_the_revision_is_made_a_commit_and_kept(fake, home):
    commit = fake.add("team/toy", MODEL)
    get(TOY)
    entry = kept(home)
    assert entry["hub"] == {"repository": "team/toy", "revision": commit, "asked": "main"}
    expected = {
        name: {"size": len(data), "sha256": sha256(data)}
        | ({} if name == "model.bin" else {"git": git_name(data)})
        for name, data in MODEL.items()
    }
    assert entry["files"] == expected
    assert entry["licence"] == "mit"
    assert (entry["task"], entry["languages"], entry["targets"]) == (
        "translation",
        ["en", "zh", "de"],
        ["en"],
    )
    assert all(f"/resolve/{commit}/" in path for path in fake.paths() if "/resolve/" in path)


def test_the_second_time_nobody_is_asked_whatever_main_is_now(fake):
    fake.add("team/toy", MODEL)
    get(TOY)
    fake.asked.clear()
    repository = fake.repositories["team/toy"]
    repository.commits["d" * 40] = MODEL | {"config.json": b"{}"}
    repository.refs["main"] = "d" * 40
    assert contents(get(TOY)) == MODEL
    (get(TOY) / "config.json").unlink()  # and what is lost comes from the same commit
    assert contents(get(TOY)) == MODEL
    assert fake.paths() == [f"/team/toy/resolve/{'c' * 40}/config.json"]


@pytest.mark.parametrize("revision", ["d" * 40, "v2", "refs/pr/1"])
def test_another_revision_is_another_model(fake, revision, home):
    fake.add("team/toy", MODEL)
    other = MODEL | {"config.json": b'{"other": 1}'}
    repository = fake.repositories["team/toy"]
    repository.commits["d" * 40] = other
    repository.refs |= {"v2": "d" * 40, "refs/pr/1": "d" * 40}
    assert contents(get(f"{TOY}@{revision}")) == other
    assert contents(get(TOY)) == MODEL
    assert {f"{TOY}@{revision}", TOY} <= set(catalogue.names())
    assert catalogue.model(f"{TOY}@{revision}").hub.revision == "d" * 40
    assert shelf.verify(f"{TOY}@{revision}") == []


def test_large_files_come_from_another_host_that_learns_no_token(fake, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    fake.add("team/toy", MODEL, token="secret")
    get(TOY)
    told = {(asked.host, asked.headers.get("authorization")) for asked in fake.asked}
    assert told == {("hub", "Bearer secret"), ("cdn", None)}
    assert fake.paths("cdn") == [f"/large/{sha256(WEIGHTS)}"]


def test_a_repository_that_was_renamed_is_followed_with_the_token(fake, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    fake.add("new/toy", MODEL, token="secret")
    fake.renamed["team/toy"] = "new/toy"
    assert contents(get(TOY)) == MODEL


def test_the_token_that_the_hubs_client_keeps(fake, tmp_path):
    (tmp_path / "hub-client").mkdir()
    (tmp_path / "hub-client" / "token").write_text("secret\n")
    fake.add("team/toy", MODEL, token="secret")
    assert contents(get(TOY)) == MODEL


def test_a_download_that_broke_is_continued(fake):
    fake.add("team/toy", MODEL)
    fake.hang_up_after = [100_000]
    assert contents(get(TOY)) == MODEL
    ranges = [asked.headers.get("range") for asked in fake.asked if asked.host == "cdn"]
    assert ranges == [None, "bytes=100000-"]


def test_half_a_download_is_kept_and_continued_later(fake, waited):
    fake.add("team/toy", MODEL)
    fake.hang_up_after = [100_000, 0, 0, 0, 0]  # the later connections bring nothing
    assert "model.bin: the answer stops at 100000 of 256000 bytes" in refused()
    assert find(TOY) is None
    fake.asked.clear()
    assert contents(get(TOY)) == MODEL
    ranges = [asked.headers.get("range") for asked in fake.asked if asked.host == "cdn"]
    assert ranges == ["bytes=100000-"]


def test_a_mirror_whose_records_are_bare_answers_in_headers(fake, home):
    fake.blobs = False
    fake.add("team/toy", MODEL)
    assert contents(get(TOY)) == MODEL
    assert kept(home)["files"]["model.bin"] == {"size": len(WEIGHTS), "sha256": sha256(WEIGHTS)}
    assert kept(home)["files"]["config.json"]["git"] == git_name(MODEL["config.json"])
    heads = [asked for asked in fake.asked if asked.method == "HEAD"]
    assert {asked.host for asked in heads} == {"hub"}  # the other host is not asked for tags


@pytest.mark.parametrize("file", ["model.bin", "config.json"])
def test_other_bytes_than_the_records_say_are_refused(fake, home, file):
    fake.add("team/toy", MODEL)
    fake.lies = {file: b"x" * len(MODEL[file]), sha256(MODEL[file]): b"x" * len(MODEL[file])}
    assert f"{TOY}/{file} is not the file" in refused()
    assert not (home / "models" / "hub--team--toy" / file).exists()
    assert find(TOY) is None


REFUSALS = [
    (401, {}, "there is no team/toy, or it is not open to all; .* set HF_TOKEN"),
    (401, {"X-Error-Code": "RepoNotFound"}, "there is no team/toy, or it is not open to all"),
    (401, {"X-Error-Code": "GatedRepo"}, "accept the model's terms on http.*/team/toy and set HF"),
    (403, {}, "accept the model's terms on http.*/team/toy and set HF_TOKEN"),
    (404, {}, "there is no team/toy on http.*, or not at this revision"),
    (404, {"X-Error-Code": "RevisionNotFound"}, "team/toy has no revision 'main'"),
    (418, {}, "the server answers 418"),
]


@pytest.mark.parametrize(("status", "headers", "sentence"), REFUSALS)
def test_a_refusal_says_what_to_do(fake, status, headers, sentence):
    fake.add("team/toy", MODEL)
    fake.refusals = [Refusal(status, headers)]
    with pytest.raises(DragomanError, match=rf"cannot get the model '{TOY}': .*{sentence}"):
        get(TOY)
    assert len(fake.asked) == 1  # nobody asks again for what was refused
    assert contents(get(TOY)) == MODEL  # and nothing is remembered of it


def test_a_token_that_opens_nothing(fake, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "wrong")
    fake.add("team/toy", MODEL, token="secret")
    assert "or your token does not open it" in refused()


def test_gated(fake):
    fake.add("team/toy", MODEL, gated=True)
    assert f"accept the model's terms on {fake.hub}/team/toy" in refused()


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_hub_is_asked_again(fake, waited, status):
    fake.add("team/toy", MODEL)
    fake.refusals = [Refusal(status), Refusal(status)]
    fake.cdn_refusals = [Refusal(status)]
    assert contents(get(TOY)) == MODEL
    assert waited == [1, 3, 1]


def test_a_hub_that_stays_busy_is_given_up(fake, waited):
    fake.refusals = [Refusal(503)] * 10
    assert "the server answers 503" in refused()
    assert len(fake.asked) == 4
    assert waited == [1, 3, 9]


def test_a_hub_that_says_how_long_to_wait(fake, waited):
    fake.add("team/toy", MODEL)
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 30))
    fake.refusals = [Refusal(429, {"Retry-After": "7"}), Refusal(429, {"Retry-After": date})]
    get(TOY)
    assert waited[0] == 7
    assert 25 < waited[1] <= 30


@pytest.mark.parametrize("told", ["3600", "Fri, 01 Jan 2100 00:00:00 GMT"])
def test_a_hub_that_wants_too_long_a_rest(fake, waited, told):
    fake.refusals = [Refusal(429, {"Retry-After": told})]
    assert "s of rest; try later" in refused()
    assert waited == []


def test_no_redirect_leads_out_of_a_protected_connection():
    request = urllib.request.Request("https://hub/x", headers={"Authorization": "Bearer secret"})
    redirects = download._Redirects(stay=False)
    with pytest.raises(urllib.error.URLError, match="the unprotected other"):
        redirects.redirect_request(request, None, 302, "Found", {}, "http://other/x")
    followed = redirects.redirect_request(request, None, 302, "Found", {}, "https://hub:444/x")
    assert not followed.has_header("Authorization")  # another port is another host
    followed = redirects.redirect_request(request, None, 302, "Found", {}, "https://hub/y")
    assert followed.has_header("Authorization")


def test_redirects_in_a_circle(fake):
    fake.circle = True
    assert "the server redirects in a circle" in refused()


def test_no_hub_at_all(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    assert "no connection (" in refused()


@pytest.mark.parametrize("name", [TOY, "toy"])
def test_an_address_that_is_none(monkeypatch, enter, name):
    monkeypatch.setenv("HF_ENDPOINT", "mirror.example")
    enter("toy", {"a.bin": b"bytes"}, hub={"repository": "team/toy", "revision": "c" * 40})
    assert "'mirror.example/" in (told := refused(name))
    assert "is no address of the web" in told


def test_something_that_is_no_hub(server, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    server.pages["/api/models/team/toy/revision/main?blobs=true"] = b"<html>hello</html>"
    assert "the answer is not JSON; is this a model hub?" in refused()


@pytest.mark.parametrize("record", [{}, {"sha": "c" * 40}, [], {"sha": "c" * 40, "siblings": [1]}])
def test_records_that_make_no_sense(server, monkeypatch, record):
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    page = "/api/models/team/toy/revision/main?blobs=true"
    server.pages[page] = json.dumps(record).encode()
    assert "the hub's record of it cannot be read" in refused()


def test_a_repository_without_a_converted_model(fake):
    fake.add("team/toy", {"pytorch_model.bin": b"x", "config.json": b"{}"})
    assert "team/toy holds no model.bin" in refused()
    assert "ct2-transformers-converter" in refused()
    assert not any("/resolve/" in path for path in fake.paths())


def test_a_model_that_is_neither_whisper_nor_translator(fake):
    fake.add("team/toy", MODEL | {"vocabulary.txt": b"just\nwords"})
    assert "neither a Whisper nor a translator" in refused()
    shelf.remove(TOY)
    assert TOY not in catalogue.names()


@pytest.mark.parametrize(
    "name",
    [
        "hub:",
        "hub:toy",
        "hub:a/b/c",
        "hub:a/b@",
        "hub:../b",
        "hub:a/b--c",
        "hub:a/b@../..",
        "hub:a b/c",
    ],
)
def test_names_that_cannot_be_of_the_hub(name):
    with pytest.raises(DragomanError, match="names no model of the hub"):
        get(name)


def test_offline_without_a_cache(fake, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    fake.add("team/toy", MODEL)
    assert "switched off by HF_HUB_OFFLINE" in refused()
    assert fake.asked == []


def client_cache(tmp_path, files, commit="c" * 40, links=True):
    """What the hub's own client leaves behind."""
    cache = tmp_path / "hub-client" / "hub" / "models--team--toy"
    snapshot = cache / "snapshots" / commit
    for folder in (snapshot, cache / "blobs", cache / "refs"):
        folder.mkdir(parents=True)
    (cache / "refs" / "main").write_text(commit)
    for name, data in files.items():
        tag = sha256(data) if len(data) >= 10_000 else git_name(data)
        place = cache / "blobs" / tag if links else snapshot / name
        place.write_bytes(data)
        if links:
            (snapshot / name).symlink_to(place)
    return snapshot


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("revision", ["", "@main", f"@{'c' * 40}"])
def test_what_the_hubs_client_has_fetched_is_used(fake, tmp_path, monkeypatch, revision, links):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    client_cache(tmp_path, MODEL | {"README.md": b"read me"}, links=links)
    folder = get(TOY + revision)
    assert contents(folder) == MODEL
    assert fake.asked == []
    assert all(path.is_symlink() for path in folder.iterdir())
    assert catalogue.model(TOY + revision).hub.revision == "c" * 40


def test_what_another_program_left_out_is_fetched(fake, tmp_path):
    """And at its commit, though main has moved on."""
    fake.add("team/toy", MODEL)
    repository = fake.repositories["team/toy"]
    repository.commits["d" * 40] = MODEL | {"config.json": b"{}"}
    repository.refs["main"] = "d" * 40
    client_cache(tmp_path, {name: MODEL[name] for name in ("model.bin", "vocabulary.txt")})
    assert contents(get(TOY)) == MODEL
    fetched = [path.rsplit("/", 1)[1] for path in fake.paths() if "/resolve/" in path]
    assert sorted(fetched) == ["config.json", "tokenizer.json"]
    assert fake.paths("cdn") == []


def test_a_cache_serves_where_the_hub_refuses(fake, tmp_path):
    client_cache(tmp_path, MODEL)  # the hub knows nothing of it (any more)
    assert contents(get(TOY)) == MODEL


def test_damage_in_the_clients_cache_is_noticed_and_mended(fake, tmp_path):
    fake.add("team/toy", MODEL)
    snapshot = client_cache(tmp_path, MODEL)
    (snapshot / "model.bin").resolve().write_bytes(b"x" * len(WEIGHTS))
    assert contents(get(TOY)) == MODEL
    assert fake.paths("cdn") == [f"/large/{sha256(WEIGHTS)}"]


def test_half_a_cache_is_not_a_model(fake, tmp_path):
    fake.add("team/toy", MODEL)
    client_cache(tmp_path, {"config.json": MODEL["config.json"]})
    assert contents(get(TOY)) == MODEL


def test_from_get_to_rm(fake, home):
    fake.add("team/toy", MODEL)

    def run(*arguments):
        done = CliRunner().invoke(command, arguments, catch_exceptions=False)
        assert done.exit_code == 0
        return done.stdout

    folder = home / "models" / "hub--team--toy"
    assert run("get", TOY) == f"{folder}\n"
    assert run("path", TOY) == f"{folder}\n"
    assert run("verify") == f"{TOY}: as it should be\n"
    assert run("rm", TOY) == f"{TOY}: removed\n"
    assert not folder.exists()
    assert find(TOY) is None
    fake.repositories["team/toy"].refs["main"] = "d" * 40
    fake.repositories["team/toy"].commits["d" * 40] = MODEL
    run("get", TOY)  # forgotten: main is looked up anew
    assert catalogue.model(TOY).hub.revision == "d" * 40


def test_verify_of_what_was_never_fetched():
    assert shelf.verify(TOY) == ["it is not here"]


@pytest.fixture
def open_entry(home):
    """A catalogue entry that names the weights and leaves the rest to the hub."""

    def enter(weights: bytes) -> None:
        entry = {
            "about": "a toy",
            "task": "recognition",
            "languages": ["de"],
            "licence": "MIT",
            "files": {"model.bin": {"size": len(weights), "sha256": sha256(weights)}},
            "hub": {"repository": "team/toy", "revision": "c" * 40},
            "rest_from_hub": True,
        }
        (home / "entries").mkdir(parents=True)
        (home / "entries" / "toy.yaml").write_text(yaml.safe_dump(entry))

    return enter


def test_the_hub_completes_an_entry(fake, home, open_entry):
    fake.add("team/toy", MODEL)
    open_entry(WEIGHTS)
    assert contents(get("toy")) == MODEL
    entry = kept(home, "toy")
    assert "rest_from_hub" not in entry
    assert set(entry["files"]) == set(MODEL)
    assert (entry["task"], entry["languages"]) == ("recognition", ["de"])  # as the entry says
    fake.asked.clear()
    get("toy")
    assert fake.asked == []


def test_the_hub_may_not_contradict_the_catalogue(fake, open_entry):
    fake.add("team/toy", MODEL)
    open_entry(b"other weights" * 1000)
    assert "the hub's model.bin of team/toy is not the file that the catalogue names" in refused(
        "toy"
    )
    assert not any("/resolve/" in path for path in fake.paths())


def test_a_shipped_entry_that_was_completed_goes_before(fake, home, monkeypatch):
    """As `distil-medium.en`: the completed entry lies in the store; rm brings back the other."""
    shipped = home / "shipped"
    shipped.mkdir(parents=True)
    monkeypatch.setattr("dragoman.store.home.shipped_entries", lambda: shipped)
    fake.add("team/toy", MODEL)
    text = (
        "{about: a toy, task: recognition, languages: [en], licence: MIT, files: {}, "
        f"hub: {{repository: team/toy, revision: {'c' * 40}}}, rest_from_hub: true}}"
    )
    (shipped / "toy.yaml").write_text(text)
    get("toy")
    assert catalogue.names() == ["toy"]
    assert catalogue.entry_path("toy") == home / "entries" / "toy.yaml"
    shelf.remove("toy")
    assert catalogue.entry_path("toy") == shipped / "toy.yaml"


def test_the_stand_in_names_files_as_git_does():
    assert git_name(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"
    assert sha256(b"") == hashlib.sha256().hexdigest()

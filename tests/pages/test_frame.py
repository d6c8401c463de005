"""The frame of every page: navigation, theme, errors, and nothing inline."""

import gzip
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.finders import get_finders
from django.template.loader import get_template
from django.test import Client

from config.http.static_storage import StaticStorage
from config.settings import BASE_DIR
from tests.support.factories import Cast
from tests.support.pages import text

FILE_OF_A_BUNDLE = "timeline.html"
"""No server sends it, and it loads nothing: its style is in it."""
TEMPLATES = sorted((BASE_DIR / "templates").rglob("*.html"))


def signed_in(cast: Cast) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(cast.viewer)
    return client


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_compile_and_contain_nothing_inline(path: Path) -> None:
    get_template(str(path.relative_to(BASE_DIR / "templates")))
    source = path.read_text()
    inline = r"""\sstyle=|<style|\son\w+=["']|<script(?![^>]*\bsrc=)|javascript:"""
    if path.name == FILE_OF_A_BUNDLE:
        assert "default-src 'none'" in source
        source = re.sub(r"<style>.*?</style>", "", source, flags=re.DOTALL)
    assert not re.search(inline, source)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_every_htmx_request_has_an_equivalent_link(path: Path) -> None:
    # But for a field, whose form has one: what it asks for while it is typed into is a help.
    source = path.read_text()
    for tag in re.findall(r"<(?!input)\w+[^>]*\shx-(?:get|post)=[^>]*>", source):
        if re.search(r"\s(href|action)=", tag) or 'hx-trigger="every' in tag:
            continue  # what looks again by itself is there already
        address = re.search(r'hx-get="([^"]*)"', tag)
        assert address is not None, tag
        assert 'hx-trigger="load"' in tag, tag
        link = rf'<a\s+href="{re.escape(address[1])}"'
        assert re.search(link, source), f"without a script nothing leads to {tag}"


def test_style_sheets_define_colours_only_in_tokens() -> None:
    for path in (BASE_DIR / "static" / "css").rglob("*.css"):
        if path.name != "tokens.css":
            assert not re.search(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsla?\(", path.read_text()), path


def test_page_names_the_tenant_and_the_current_section(acme: Cast) -> None:
    page = signed_in(acme).get("/traces/").content.decode()
    assert acme.tenant.name in page
    current = page[page.index('<a href="/traces/" aria-current="page"') :]
    assert text(current[: current.index("</a>")]) == "Traces"
    assert acme.viewer.username in page


def test_pages_allow_no_inline_script_or_style(acme: Cast) -> None:
    response = signed_in(acme).get("/traces/")
    policy = response.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    nonce = re.search(r"'nonce-([^']+)'", policy)
    assert nonce is not None
    assert f'nonce="{nonce[1]}"' in response.content.decode()


@pytest.mark.parametrize(
    ("chosen", "attribute"),
    [("dark", ' data-theme="dark"'), ("light", ' data-theme="light"'), ("auto", "")],
)
def test_theme_is_selected_without_javascript(acme: Cast, chosen: str, attribute: str) -> None:
    client = signed_in(acme)
    answer = client.post("/theme", {"theme": chosen, "next": "/traces/"})
    assert answer.headers["Location"] == "/traces/"
    assert f'<html lang="en"{attribute}>' in client.get("/traces/").content.decode()


def test_invalid_theme_cookie_is_ignored(acme: Cast) -> None:
    client = signed_in(acme)
    client.cookies["theme"] = '"><script>'
    assert '<html lang="en">' in client.get("/traces/").content.decode()


@pytest.mark.parametrize("back", ["//evil.example/", "https://evil.example/", ""])
def test_theme_switch_redirects_only_within_the_site(acme: Cast, back: str) -> None:
    answer = signed_in(acme).post("/theme", {"theme": "dark", "next": back})
    assert answer.headers["Location"] == "/"


def test_theme_switch_rejects_get(acme: Cast) -> None:
    assert signed_in(acme).get("/theme").status_code == 405


def test_unknown_url_gets_an_error_page_or_fragment(acme: Cast) -> None:
    client = signed_in(acme)
    page = client.get("/nowhere/")
    part = client.get("/nowhere/", headers={"HX-Request": "true"})
    assert (page.status_code, part.status_code) == (404, 404)
    assert b"<html" in page.content
    assert b"<html" not in part.content


def test_start_page_without_calls_explains_how_to_begin(acme: Cast) -> None:
    assert b"No tool calls yet" in signed_in(acme).get("/").content


def test_anonymous_user_is_redirected_to_sign_in() -> None:
    assert Client().get("/traces/").headers["Location"].startswith("/login")


def test_vendored_files_are_listed_with_their_licence() -> None:
    folder = Path(str(finders.find("vendor/README.md"))).parent
    listed = (folder / "README.md").read_text()
    for licence in folder.rglob("LICENSE"):
        assert str(licence.relative_to(folder)) in listed
    assert settings.STATIC_URL


def without_comments(text: str) -> str:
    """A style sheet or script without comments that have lines of their own."""
    lines: list[str] = []
    is_inside = False
    for line in text.splitlines(keepends=True):
        start = line.lstrip()
        is_inside = is_inside or (start.startswith("/*") and not start.startswith("/*!"))
        if is_inside:
            is_inside = "*/" not in line
        elif not start.startswith("//"):
            lines.append(line)
    return "".join(lines)


@pytest.mark.slow
def test_page_loads_its_frame_in_one_style_sheet_without_comments(tmp_path: Path) -> None:
    """Each line that imports another sheet is what it names, once collected."""
    served = StaticStorage(location=tmp_path)
    files = {name: (source, name) for finder in get_finders() for name, source in finder.list([])}
    for name, (source, path) in files.items():
        with source.open(path) as file:
            served.save(name, file)
    problems = [each for *_, each in served.post_process(files) if isinstance(each, Exception)]
    frame = (tmp_path / served.stored_name("css/app.css")).read_text()

    assert problems == []
    assert "@import" not in frame
    for part in ("vendor/tabler/1.6.1/tabler.min.css", "css/tokens.css", "css/frame/page.css"):
        assert without_comments(Path(str(finders.find(part))).read_text()) in frame
    assert "@import" not in (tmp_path / served.stored_name("css/traces/timeline.css")).read_text()
    assert "Licensed under MIT" in frame
    for name in ("js/charts.js", "js/page.js", "css/tokens.css", "css/frame/page.css"):
        source = Path(str(finders.find(name))).read_text()
        collected = (tmp_path / served.stored_name(name)).read_text()
        assert collected == without_comments(source) != source


def test_tabler_classes_in_templates_are_in_the_build() -> None:
    """If this fails, run `static/vendor/renew tabler VERSION`, which looks at them again."""
    (names,) = Path(str(finders.find("vendor/README.md"))).parent.glob("tabler/*/classes.txt")
    built = set(re.findall(r"\.(-*[A-Za-z_][\w-]*)", names.with_name("tabler.min.css").read_text()))
    words = {
        word
        for path in TEMPLATES
        for classes in re.findall(r'class="([^"]*)"', path.read_text())
        for word in re.findall(r"[\w-]+", re.sub(r"\{\{.*?\}\}", " ", classes))
    }
    used = words & set(names.read_text().split())

    assert {"btn", "form-control"} <= used
    assert used - built == set()


def test_pages_are_compressed_on_request(acme: Cast) -> None:
    client = signed_in(acme)
    plain = client.get("/traces/")
    packed = client.get("/traces/", headers={"accept-encoding": "gzip"})

    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.content) < len(plain.content) / 2
    assert "<main" in gzip.decompress(packed.content).decode()

"""Debian's Chromium, unpacked: what the tests of pages will lean on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.real.chromium.handle import BrowserFailed, Chromium
from tests.real.ports import HOST, free_port

pytestmark = pytest.mark.real


@pytest.fixture
def page(tmp_path: Path) -> Iterator[str]:
    """The address of a page that fills itself in by a script, served on loopback."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text(
        "<!doctype html><body style='margin:0;background:rgb(0,128,0)'><p id=answer></p>"
        "<script>setTimeout(() => { document.getElementById('answer').textContent = 6 * 7 }, 500)</script>"
    )
    (folder / "look.html").write_text(
        "<!doctype html><body><img src=page.png onload='const c = document.createElement(`canvas`).getContext(`2d`);"
        "c.drawImage(this, 0, 0); document.body.textContent = [this.width, this.height, ...c.getImageData(150, 100, 1, 1).data]'>"
    )
    server = ThreadingHTTPServer((HOST, free_port()), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://{HOST}:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_runs_scripts_before_it_prints_the_dom(chromium: Chromium, page: str) -> None:
    """The DOM holds what a script put there, once the page was given the time the script waits for."""
    assert '<p id="answer">42</p>' in chromium.dom(page, settle=2.0)


def test_paints_a_picture(chromium: Chromium, page: str, tmp_path: Path) -> None:
    """A screenshot is a PNG of the asked size in the page's colour, as the browser itself says of the picture."""
    picture = chromium.screenshot(page, tmp_path / "site" / "page.png", width=320, height=200)

    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "<body>320,200,0,128,0,255</body>" in chromium.dom(f"{page}look.html", settle=2.0)


def test_says_that_nobody_serves_a_page(chromium: Chromium) -> None:
    """An address where nobody listens raises; it is no empty page."""
    url = f"http://{HOST}:{free_port()}/"

    with pytest.raises(BrowserFailed, match=f"url {url}: the browser shows nothing"):
        chromium.dom(url)


def test_says_that_it_could_not_start() -> None:
    """A browser that ends with an error raises, with the address it was to show."""
    with pytest.raises(BrowserFailed, match="url about:blank: exit code 1"):
        Chromium(Path("/bin/false"), Path("/bin/false")).dom("about:blank")

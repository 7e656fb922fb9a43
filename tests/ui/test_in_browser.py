"""The pages of a running service in a real browser: a fleet of thousands, one agent, nobody; and
what happens meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from otel_reliability.model.span import RawSpan
from tests.otlp import traces_protobuf
from tests.report.build import chat, run_spans
from tests.service.running import Running, runs_of, serving
from tests.ui.browser import Browser, Scheme, faults, is_too_wide

pytestmark = pytest.mark.real

HOSTILE = "<script>alert(1)</script>"
ENGINE = {"metrics": {"min_runs": 2}}
MANY = 2_000
PATHS = (("search", "book"), ("pay",))


def told_run(trace: int, tools: str, agent: str) -> list[RawSpan]:
    """A run that tells its task, its outcome and how full its context was."""
    known: dict[str, Any] = {
        "task": f"task-{trace % 3}",
        "success": trace % 4 > 0,
        "session": f"talk-{trace // 3}",
    }
    model: dict[str, Any] = {"gen_ai__response__model": "m", "reliability__context_limit": 10_000}
    return [
        *run_spans(trace, tools, agent=agent, **known),
        chat(trace, 1_000 * (1 + trace % 9), **model),
    ]


def wanderer(agent: str = "wanderer", first: int = 1, runs: int = 24) -> list[RawSpan]:
    """An agent with something to see in every section."""
    paths = (
        "search book",
        "search book",
        "search search pay",
        "look book",
        "search book mail refund pay look search book end",
    )
    return [
        one
        for trace in range(first, first + runs)
        for one in told_run(trace, paths[trace % len(paths)], agent)
    ]


@pytest.fixture(scope="module")
def many() -> Iterator[Running]:
    """A service that knows 2,000 agents, one of which has done more than the others."""
    with serving(ENGINE) as running:
        for first in range(0, MANY - 1, 500):
            numbers = range(first, min(first + 500, MANY - 1))
            spans = [
                one
                for number in numbers
                for one in runs_of(
                    2,
                    ("search", "book") if number % 5 else ("pay",),
                    f"agent-{number:04}",
                    first=1_000 + 2 * number,
                )
            ]
            assert running.post("traces", traces_protobuf(spans)).status == 200
        running.send(wanderer())
        yield running


@pytest.fixture(scope="module")
def fifty() -> Iterator[Running]:
    """A service that knows 50 agents, some with names that were made to do harm."""
    with serving(ENGINE) as running:
        spans = [
            one
            for number in range(47)
            for one in runs_of(2, agent=f"agent-{number:02}", first=100 + 2 * number)
        ]
        spans += wanderer(HOSTILE)
        spans += runs_of(3, ("x" * 10_000, "\u202e<b>"), "tool-namer", first=300)
        spans += runs_of(3, ("a",), "..", first=310)
        running.send(spans)
        yield running


def rows(page: Page) -> list[str]:
    return page.locator(".agents__name a").all_text_contents()


def test_two_thousand_agents_come_in_pages(many: Running, browser: Browser) -> None:
    with browser.open(many.url("ui", "/")) as page:
        first = rows(page)
        page.get_by_role("link", name="Next").click()
        expect(page.get_by_text("Page 2 of 40")).to_be_visible()

        assert first[0] == "wanderer"
        assert len(first) == 50
        assert not set(first) & set(rows(page))
        expect(page.get_by_role("heading", level=1)).to_have_text("Agents")


@pytest.mark.parametrize("width", [1_000, 1_180, 1_400])
def test_every_column_stands_below_its_header(many: Running, browser: Browser, width: int) -> None:
    """Also where a width hides one."""
    with browser.open(many.url("ui", "/"), width=width) as page:
        headers = page.locator(".agents thead th:visible").all_text_contents()
        cells = page.locator(".agents tbody tr").first.locator("td:visible")
        named = [cell.get_attribute("data-label") for cell in cells.all()]

    assert [header.rstrip("↑↓↕") for header in headers] == ["Agent", *named]
    assert ("Trend" in named) is (width == 1_400)


def test_the_table_is_filtered_as_somebody_types(many: Running, browser: Browser) -> None:
    with browser.open(many.url("ui", "/")) as page:
        page.evaluate("window.same = true")
        page.get_by_role("searchbox").fill("AGENT-00")
        expect(page.locator(".head__about")).to_have_text("100 of 2,000 agents shown")
        page.get_by_label("Verdict", exact=True).select_option("critical")
        expect(page.get_by_text("No agent matches these filters.")).to_be_visible()
        page.get_by_label("Verdict", exact=True).select_option("all verdicts")
        page.get_by_label("Sort by").select_option("name")
        expect(page.locator(".agents__name a").first).to_have_text("agent-0000")

        assert page.evaluate("window.same")
        assert page.url.endswith("/?q=AGENT-00&sort=name")
        assert page.evaluate("document.activeElement.name") == "q"
        expect(page.get_by_role("status")).to_have_text("100 of 2,000 agents shown")


def test_the_table_works_without_scripts(many: Running, browser: Browser) -> None:
    with browser.open(many.url("ui", "/"), scripts=False) as page:
        page.get_by_role("searchbox").fill("wander")
        page.get_by_role("button", name="Show").click()
        expect(page.locator(".head__about")).to_have_text("1 of 2,000 agents shown")
        page.get_by_role("link", name="wanderer").click()

        expect(page.locator(".chart svg")).to_be_visible()
        expect(page.locator(".flow").first).to_be_visible()


def test_a_run_shows_by_itself(browser: Browser) -> None:
    with serving(ENGINE) as running, browser.open(running.url("ui", "/")) as page:
        page.evaluate("window.same = true")
        expect(
            page.get_by_text(f"http://{running.service.addresses['http']}", exact=True)
        ).to_be_visible()
        running.send(runs_of(2, ("search",)))
        link = page.get_by_role("link", name="support")
        expect(link).to_be_visible()
        expect(page.get_by_role("status")).to_contain_text("1 agent")
        link.focus()
        running.send(runs_of(4, ("search", "book"), first=10))
        expect(page.locator("td[data-label=Runs]")).to_have_text("6")

        assert page.evaluate("window.same")
        assert page.evaluate("document.activeElement.textContent") == "support"


def test_an_agent_changes_before_your_eyes(browser: Browser) -> None:
    with serving(ENGINE) as running:
        running.send(wanderer(runs=15))
        with browser.open(running.url("ui", "/agents/shop/wanderer")) as page:
            expect(page.locator(".uplot canvas")).to_be_visible()
            page.evaluate("window.same = true")
            page.get_by_text("The points as a table").click()
            running.send(wanderer(first=100, runs=15))
            expect(page.locator(".facts")).to_contain_text("30 runs")

            assert page.evaluate("window.same")
            expect(page.locator("details.more table").first).to_be_visible()
            expect(page.locator(".uplot canvas")).to_be_visible()


def test_a_lost_service_is_told(browser: Browser) -> None:
    with serving(ENGINE) as running:
        running.send(runs_of(2))
        with browser.open(running.url("ui", "/"), refused=503) as page:
            page.route("**/*", lambda route: route.fulfill(status=503, body=""))
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            expect(page.locator(".pulse--lost")).to_contain_text("no answer")
            page.unroute_all()
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            expect(page.locator("#pulse-text")).to_have_text("live")

            assert rows(page) == ["support"]


def test_hostile_names_do_no_harm(fifty: Running, browser: Browser) -> None:
    with browser.open(fifty.url("ui", "/?sort=name")) as page:
        assert HOSTILE in rows(page)
        assert len(rows(page)) == 50
        page.get_by_role("link", name=HOSTILE).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
        page.goto(fifty.url("ui", "/?sort=name"))
        page.get_by_role("link", name="..", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("..")
        page.goto(fifty.url("ui", "/agents/shop/tool-namer"))
        longest = max(len(text) for text in page.locator(".step, .flow text").all_text_contents())

        assert longest <= 40
        assert not is_too_wide(page)


BROKEN_WORDS = """() => [...document.querySelectorAll("h1, th[scope=row], .agents__name a, .step, .crumbs a, dd")].flatMap(
  (one) => {
    const walk = document.createTreeWalker(one, NodeFilter.SHOW_TEXT), broken = [];
    for (let text = walk.nextNode(); text; text = walk.nextNode()) {
      for (const word of text.data.matchAll(/[A-Za-z]{1,24}/g)) {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(word[0]);
      }
    }
    return broken;
  })"""
"""Words of at most 24 letters that stand on two lines."""
SIDEWAYS = """() => [...document.querySelectorAll("main *")].filter((one) => one.scrollWidth > one.clientWidth + 1
  && ["auto", "scroll"].includes(getComputedStyle(one).overflowX)
  && !one.querySelector(".flow")).map((one) => one.outerHTML.slice(0, 80))"""
"""What has to be scrolled sideways, but for graphs of paths."""
LONG_NAME = "customer_support_refund_orchestrator-v2"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, list[str]]]:
    """A service with a state directory that knows an agent of a long name, and one of each kind of
    page about it.
    """
    with serving(ENGINE, state=str(tmp_path_factory.mktemp("state"))) as running:
        running.send(wanderer(LONG_NAME, runs=40))
        agent = f"/agents/shop/{LONG_NAME}"
        run = re.findall(rf'href="({agent}/runs/[^"]+)"', running.get("ui", f"{agent}/runs").text)[
            0
        ]
        yield (
            running,
            ["/", "/?q=nobody", agent, f"{agent}/runs", run, f"{agent}/compare", "/alerts"],
        )


@pytest.mark.parametrize("page_at", range(7))
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_for_everybody_at_every_width(
    kept: tuple[Running, list[str]], browser: Browser, page_at: int, scheme: Scheme
) -> None:
    running, paths = kept
    with browser.open(running.url("ui", paths[page_at]), scheme=scheme) as page:
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        for width in (320, 390, 860, 1440):
            page.set_viewport_size({"width": width, "height": 800})
            assert not is_too_wide(page), width
            assert page.evaluate(SIDEWAYS) == [], width
            assert page.evaluate(BROKEN_WORDS) == [], width
            assert width not in {320, 1440} or faults(page) == []


def test_a_chart_that_does_not_follow_a_new_width_yet_does_not_widen_the_page(
    kept: tuple[Running, list[str]], browser: Browser
) -> None:
    running, paths = kept
    with browser.open(running.url("ui", paths[2])) as page:
        page.locator(".uplot").first.evaluate("(chart) => { chart.style.width = '2000px'; }")
        assert not is_too_wide(page)


def test_the_list_of_runs_is_filtered_in_place(
    kept: tuple[Running, list[str]], browser: Browser
) -> None:
    running, paths = kept
    with browser.open(running.url("ui", paths[3])) as page:
        page.evaluate("window.same = true")
        page.get_by_label("Outcome").select_option("failure")
        expect(page.locator(".head__about")).to_have_text("10 of the last 40 runs kept")

        assert page.evaluate("window.same")
        assert "outcome=failure" in page.url
        assert "/runs?" in page.url


def test_a_keyboard_is_enough(many: Running, browser: Browser) -> None:
    with browser.open(many.url("ui", "/?q=wanderer")) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        page.keyboard.press("Enter")
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "wanderer":
                break
        page.keyboard.press("Enter")

        expect(page.get_by_role("heading", level=1)).to_have_text("wanderer")


def test_a_browser_brings_the_token(browser: Browser) -> None:
    token = "a-token-of-32-characters-or-more"
    with serving(token=token) as running, browser.open(running.url("ui", "/"), token=token) as page:
        expect(page.get_by_text("No agent has run yet")).to_be_visible()
        expect(page.locator("#pulse-text")).to_have_text("live")

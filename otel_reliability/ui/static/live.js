// The page as it is now, every few seconds: what differs is put in place, nothing else is touched. Times are told as "ago".
"use strict";

(() => {
  const EVERY = Number(document.body.dataset.poll);
  const TYPING = 250;
  const main = document.getElementById("main");
  const pulse = document.getElementById("pulse");
  const announcement = document.getElementById("announcement");
  let tag = null, timer = 0, asking = 0;

  document.documentElement.classList.add("scripted");

  // --- Putting in place -------------------------------------------------------------------------------------------

  const keyOf = (node) => (node.nodeType === 1 ? node.dataset.key || node.id : "") || "";

  function attributes(have, want) {
    for (const { name } of [...have.attributes]) {
      if (!want.hasAttribute(name) && !(name === "open" && have.nodeName === "DETAILS")) have.removeAttribute(name);
    }
    for (const { name, value } of want.attributes) {
      if (name === "open" && have.nodeName === "DETAILS") continue;
      if (have.getAttribute(name) !== value) have.setAttribute(name, value);
    }
  }

  function morph(have, want) {
    if (have.nodeType !== 1) {
      if (have.data !== want.data) have.data = want.data;
      return;
    }
    if (have.dataset.chart !== undefined) {
      const differs = have.dataset.chart !== want.dataset.chart;
      attributes(have, want);
      if (differs) window.reliabilityCharts.draw(have);
      return;
    }
    attributes(have, want);
    children(have, want);
  }

  function children(have, want) {
    const keyed = new Map([...have.childNodes].filter(keyOf).map((node) => [keyOf(node), node]));
    let at = have.firstChild;
    for (const next of [...want.childNodes]) {
      const key = keyOf(next);
      const match = key ? keyed.get(key) : at && !keyOf(at) ? at : null;
      if (match && match.nodeName === next.nodeName) {
        if (match === at) at = at.nextSibling;
        else have.insertBefore(match, at);
        keyed.delete(key);
        morph(match, next);
      } else {
        have.insertBefore(document.importNode(next, true), at);
      }
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  const announced = () => [...document.querySelectorAll("[data-announce]")].map((one) => one.textContent.trim().replace(/\s+/g, " ")).join(". ");

  function show(text) {
    const page = new DOMParser().parseFromString(text, "text/html");
    const focused = document.activeElement, before = announced();
    children(main, page.getElementById("main"));
    document.title = page.title;
    if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
    ago();
    window.reliabilityCharts.refresh();
    const now = announced();
    if (now !== before) announcement.textContent = now;
  }

  // --- Asking -----------------------------------------------------------------------------------------------------

  function told(words, lost) {
    pulse.hidden = false;
    pulse.classList.toggle("pulse--lost", lost);
    const text = document.getElementById("pulse-text");
    if (text.textContent !== words) text.textContent = words;
  }

  async function ask() {
    clearTimeout(timer);
    const number = ++asking, address = location.href;
    try {
      const answer = await fetch(address, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
      if (number !== asking) return;
      if (answer.status === 200) {
        tag = answer.headers.get("ETag");
        show(await answer.text());
      }
      const fine = answer.status === 200 || answer.status === 304;
      told(fine ? "live" : "the service has no answer to this page now", !fine);
    } catch {
      told("no connection, trying again", true);
    }
    if (number === asking) timer = setTimeout(ask, EVERY);
  }

  // --- Time -------------------------------------------------------------------------------------------------------

  const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

  function since(seconds) {
    if (seconds < 5) return "just now";
    const [unit, size] = UNITS.find(([, one]) => seconds >= one);
    return `${Math.floor(seconds / size)} ${unit} ago`;
  }

  function ago() {
    for (const time of document.querySelectorAll("time[data-ago]")) {
      const words = since((Date.now() - Date.parse(time.dateTime)) / 1000);
      if (time.textContent !== words) time.textContent = words;
    }
  }

  // --- Choosing ---------------------------------------------------------------------------------------------------

  function choose() {
    const form = document.getElementById("filters");
    const chosen = [...new FormData(form)].filter(([name, value]) => value && !(name === "sort" && value === "score"));
    const query = new URLSearchParams(chosen).toString();
    history.replaceState(null, "", location.pathname + (query ? `?${query}` : ""));
    tag = null;
    ask();
  }

  let typed = 0;
  document.addEventListener("input", (event) => {
    if (!event.target.closest("#filters")) return;
    clearTimeout(typed);
    typed = setTimeout(choose, TYPING);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "filters") return;
    event.preventDefault();
    clearTimeout(typed);
    choose();
  });

  ago();
  if (EVERY > 0) {
    told("live", false);
    timer = setTimeout(ask, EVERY);
    document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : ask()));
  }
  setInterval(ago, 10_000);
})();

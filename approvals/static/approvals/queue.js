/* The queue by keyboard, its ticks, and its list fetched again when something changed. Without this file everything
   still works by pressing and reloading. */
"use strict";
(() => {
  const place = document.getElementById("k-queue");
  const news = document.getElementById("k-news");
  const keys = document.getElementById("k-keys");
  if (!place) return;
  const CALM = 800;
  const LONGEST = 8000;
  let busyUntil = 0;
  let waitingSince = 0;
  let timer = 0;
  let fetching = false;
  let stale = false;
  let counted = { opened: 0, closed: 0 };

  const rows = () => [...place.querySelectorAll("tr.k-row")].filter((row) => row.checkVisibility());
  const boxes = () => [...place.querySelectorAll("input[name=pick]:not([data-all]):not([data-like])")];
  const current = () => place.querySelector("tr.k-row[aria-current]");

  /* Ticks: a tick for several is made of theirs. */

  function follow() {
    for (const all of place.querySelectorAll("input[data-like], input[data-all]")) {
      const stood = all.value.split(",");
      const own = boxes().filter((box) => stood.includes(box.value));
      const on = own.filter((box) => box.checked).length;
      all.checked = own.length > 0 && on === own.length;
      all.indeterminate = on > 0 && on < own.length;
    }
    const ticked = boxes().filter((box) => box.checked).length;
    const told = document.getElementById("k-ticked");
    if (told) told.textContent = ticked ? ` (${ticked})` : "";
  }

  place.addEventListener("change", (event) => {
    const box = event.target;
    if (box.name !== "pick") return;
    if (box.dataset.like !== undefined || box.dataset.all !== undefined) {
      const stood = box.value.split(",");
      for (const one of boxes()) if (stood.includes(one.value)) one.checked = box.checked;
    }
    follow();
  });

  /* Keys. */

  function go(step) {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(current());
    const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1)];
    mark(next);
    const focus = next.querySelector("a.k-main, summary");
    if (focus) focus.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  function mark(row) {
    const before = current();
    if (before) before.removeAttribute("aria-current");
    if (row) row.setAttribute("aria-current", "true");
  }

  const acts = {
    j: () => go(1),
    k: () => go(-1),
    x: () => { const box = current() && current().querySelector("input[name=pick]"); if (box) box.click(); },
    o: () => { const open = current() && current().querySelector("a.k-main, summary"); if (open) open.click(); },
    a: () => press("approve"),
    r: () => press("reject"),
    "/": () => document.getElementById("id_q").focus(),
    "?": () => keys.showModal(),
  };

  function press(name) {
    const button = place.querySelector(`button[name=act][value=${name}]`);
    if (!button) return;
    if (boxes().some((box) => box.checked)) button.click();
    else news.textContent = "Tick at least one request first: x ticks the row that you are on.";
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || keys.open) return;
    const typing = event.target.closest("textarea, select, input:not([type=checkbox]), [contenteditable]");
    if (typing) return;
    // What has the focus takes Enter itself.
    const act = event.key === "Enter" && event.target === document.body ? acts.o : acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  place.addEventListener("focusin", (event) => mark(event.target.closest("tr.k-row")));
  document.addEventListener("click", (event) => { if (event.target.id === "k-show-keys") keys.showModal(); });

  function dress() {
    const button = document.getElementById("k-show-keys");
    if (button) button.hidden = false;
    follow();
  }

  /* What changed meanwhile: the list is fetched and put in place while nobody points at it. */

  const touched = () => { busyUntil = Date.now() + CALM; };
  for (const kind of ["pointermove", "pointerdown", "keydown", "wheel", "touchstart"]) {
    place.addEventListener(kind, touched, { passive: true });
  }

  document.addEventListener("kampong:changed", (event) => {
    counted.opened += event.detail.opened || 0;
    counted.closed += event.detail.closed || 0;
    plan();
  });

  function plan() {
    const now = Date.now();
    waitingSince = waitingSince || now;
    const patience = Math.min(busyUntil, waitingSince + LONGEST) - now;
    window.clearTimeout(timer);
    timer = window.setTimeout(patience > 0 ? plan : refresh, Math.max(patience, 0));
  }

  async function refresh() {
    if (fetching) { stale = true; return; }
    fetching = true;
    stale = false;
    waitingSince = 0;
    try {
      const answer = await fetch(window.location.href, { headers: { "X-Kampong-Part": "list" }, redirect: "error" });
      if (answer.ok) put(await answer.text());
    } catch (error) {
      /* the server is away: the next change fetches again */
    }
    fetching = false;
    if (stale) plan();
  }

  const strip = (html) => html.replace(/name="csrfmiddlewaretoken" value="[^"]*"/, "");
  const ids = () => new Set([...place.querySelectorAll("tbody a.k-main")].map((link) => link.pathname));
  const lead = () => place.querySelector(".k-lead").textContent;
  let last = strip(place.innerHTML);

  function put(text) {
    const fresh = new DOMParser().parseFromString(text, "text/html").body;
    const next = strip(fresh.innerHTML);
    if (next === last) { counted = { opened: 0, closed: 0 }; return; }
    last = next;
    const ticked = new Set(boxes().filter((box) => box.checked).map((box) => box.value));
    const unfolded = new Set([...place.querySelectorAll("details[data-like][open]")].map((one) => one.dataset.like));
    const held = place.contains(document.activeElement) ? address(document.activeElement) : null;
    const at = current() && current().dataset.row;
    const position = at && rows().indexOf(current());
    const before = { ids: ids(), lead: lead(), top: window.scrollY };
    place.replaceChildren(...fresh.childNodes);
    for (const box of boxes()) box.checked = ticked.has(box.value);
    for (const one of place.querySelectorAll("details[data-like]")) one.open = unfolded.has(one.dataset.like);
    dress();
    if (at) mark(place.querySelector(`tr.k-row[data-row="${at}"]`) || rows()[Math.min(position, rows().length - 1)]);
    if (held) {
      const same = place.querySelector(held) || (current() && current().querySelector("a.k-main, summary"));
      if (same) same.focus({ preventScroll: true });
    }
    window.scrollTo({ top: before.top, behavior: "instant" });
    tell(before);
  }

  /* How to find again what has the focus. */
  function address(node) {
    if (node.name === "pick") return `input[name=pick][value="${node.value}"]`;
    if (node.name === "act") return `button[name=act][value="${node.value}"]`;
    if (node.href) return `a[href="${node.getAttribute("href")}"]`;
    const like = node.closest("details[data-like]");
    return like ? `details[data-like="${like.dataset.like}"] > summary` : null;
  }

  function tell(before) {
    const now = ids();
    const further = lead() === before.lead ? { opened: 0, closed: 0 } : counted;
    const opened = [...now].filter((id) => !before.ids.has(id)).length || further.opened;
    const closed = [...before.ids].filter((id) => !now.has(id)).length || further.closed;
    const parts = [opened && `${opened} new`, closed && `${closed} gone`].filter(Boolean);
    counted = { opened: 0, closed: 0 };
    if (parts.length) news.textContent = `The list has changed: ${parts.join(", ")}.`;
  }

  dress();
})();

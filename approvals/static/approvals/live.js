/* How much waits for this person, kept up to date on every page of the admin. Says `kampong:changed` to the page when
   the queue changed. A socket where the server has one; otherwise, and while it cannot be had, a question every ten
   seconds. While the page is hidden it does nothing. */
"use strict";
(() => {
  const shown = document.getElementById("k-waiting");
  if (!shown) return;
  const POLL = 10000;
  const LEAST = 1000;
  let socket = null;
  let timer = 0;
  let failures = 0;
  let asking = false;
  let again = false;
  let over = false;

  const say = (detail) => document.dispatchEvent(new CustomEvent("kampong:changed", { detail }));

  async function count() {
    if (asking) { again = true; return; }
    asking = true;
    again = false;
    try {
      const answer = await fetch(shown.dataset.count, { headers: { Accept: "application/json" }, redirect: "error" });
      if (answer.status === 403) stop();
      if (answer.ok) show((await answer.json()).waiting);
    } catch (error) {
      /* the server is away: the next turn asks again */
    }
    window.setTimeout(() => { asking = false; if (again) count(); }, LEAST);
  }

  function show(text) {
    const number = shown.querySelector("strong");
    if (number.textContent !== text) number.textContent = text;
    shown.classList.toggle("k-some", text !== "0");
  }

  function stop() {
    over = true;
    rest();
  }

  function rest() {
    window.clearTimeout(timer);
    if (socket) { socket.onclose = null; socket.close(); socket = null; }
  }

  function poll() {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => { count(); say({ polled: true }); begin(); }, POLL);
  }

  function begin() {
    if (over || document.hidden) return;
    if (!shown.dataset.socket) { poll(); return; }
    const address = new URL(shown.dataset.socket, window.location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(address);
    socket.onmessage = (message) => {
      const told = JSON.parse(message.data);
      if (told.type === "snapshot") {
        if (failures) { count(); say({ polled: true }); }
        failures = 0;
      } else {
        count();
        say({ opened: told.opened.length, closed: told.closed.length });
      }
    };
    socket.onclose = (event) => {
      socket = null;
      if (event.code === 4403) { stop(); return; }
      failures += 1;
      poll();
    };
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { rest(); return; }
    if (!over && !socket) { count(); say({ polled: true }); begin(); }
  });
  window.addEventListener("pagehide", rest);
  window.addEventListener("pageshow", (event) => { if (event.persisted && !over) { count(); say({ polled: true }); begin(); } });
  begin();
})();

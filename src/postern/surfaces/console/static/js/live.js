// Calls as they come. Whatever arrives between two frames is put in place together, and the page holds no more than
// MOST_ROWS; above 20 calls a second the server counts them and sends a table instead.

import { say } from "./copy.js";

const MOST_ROWS = 100; // as in views/history/live.py
const SAY_EVERY = 1000;
const COUNT_EVERY = 10_000;

export function start(selector) {
  for (const feed of document.querySelectorAll(selector)) new Feed(feed).open();
}

class Feed {
  constructor(feed) {
    const box = feed.closest(".live-box");
    const part = (name) => box.querySelector(`[data-live-${name}]`);
    Object.assign(this, { feed, state: part("state"), counted: part("counted"), left: part("left"), pause: part("pause"), filter: part("filter") });
    this.pulses = box.querySelectorAll(".pulse");
    this.begin = feed.dataset.live;
    this.forget();
    this.pause?.addEventListener("click", () => this.setPaused(!this.paused));
    this.filter?.addEventListener("submit", (event) => event.preventDefault());
    let typing;
    this.filter?.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.choose(), 250);
    });
    if (this.filter) this.follow(this.chosen());
    // A call's story is fetched when its row is opened for the first time. Toggling does not bubble.
    feed.addEventListener("toggle", (event) => event.target.open && this.tell(event.target), true);
    // A hidden tab needs no stream, and browsers allow few of them: it asks now and then how many have come.
    document.addEventListener("visibilitychange", () => (document.hidden ? this.leave() : this.comeBack()));
    window.addEventListener("pagehide", () => this.source?.close());
  }

  forget() {
    this.arrived = new Map(); // by the row's id: what the next frame, or the end of the pause, puts in place
    this.table = null;
    this.waiting = 0;
    this.more = 0;
    this.inTable = 0;
    this.news = [];
  }

  open() {
    this.source = new EventSource(this.url ?? this.begin);
    this.source.addEventListener("call", (event) => this.take(event.data, true));
    this.source.addEventListener("moved", (event) => this.take(event.data, false));
    this.source.addEventListener("counted", (event) => this.takeTable(event.data));
    this.source.addEventListener("skipped", (event) => this.leaveOut(Number(event.data), true));
    this.source.addEventListener("listening", (event) => {
      this.relisting = false;
      this.ahead = Number(event.data) - performance.now() / 1000;
      this.show("Listening", true);
      // What there is has been listed by now: only here is it known that there is nothing.
      const none = this.feed.querySelector(".feed-empty");
      if (none && !this.arrived.size) none.hidden = false;
    });
    // A stream that is closed for good was refused: most often nobody is signed in here any more.
    this.source.addEventListener("error", () => this.show(this.source.readyState === EventSource.CLOSED ? "Stopped. Reload the page to continue." : "Reconnecting…", false));
  }

  show(text, isLive) {
    if (this.state) this.state.textContent = text;
    this.pulses.forEach((pulse) => pulse.classList.toggle("on", isLive));
  }

  // --- what arrives

  take(markup, isNew) {
    const template = document.createElement("template");
    template.innerHTML = markup;
    const row = template.content.firstElementChild;
    const before = this.arrived.get(row.id);
    // The newest state of a call, in the place where it came first.
    this.arrived.set(row.id, { row, isNew: isNew || before?.isNew });
    const isFresh = row.classList.contains("fresh");
    if (isNew && isFresh) {
      this.relisting = false;
      this.news.push(row);
      if (this.paused && !before) this.waiting += 1;
    } else if (isNew && this.relisting && !before && !document.getElementById(row.id)) this.more -= 1; // counted before
    if (this.arrived.size > MOST_ROWS) {
      const [oldest, dropped] = this.arrived.entries().next().value;
      this.arrived.delete(oldest);
      if (dropped.isNew && !document.getElementById(oldest)) this.leaveOut(1); // what is listed already is not left out
    }
    this.soon();
  }

  takeTable(markup) {
    const template = document.createElement("template");
    template.innerHTML = markup;
    this.table = template.content.firstElementChild;
    const calls = Number(this.table.dataset.calls);
    const isOver = "over" in this.table.dataset;
    const added = calls - this.inTable;
    this.inTable = isOver ? 0 : calls;
    this.relisting = isOver;
    if (this.paused) this.waiting += added;
    this.leaveOut(added);
    if (!isOver) this.news = [`${this.table.dataset.rate} calls in the last second are counted, not listed`];
    this.soon();
  }

  leaveOut(calls, isAtMost = false) {
    this.more += calls;
    this.isAtMost ||= isAtMost;
    this.soon();
  }

  // --- once a frame

  soon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (this.paused) this.showWaiting();
      else this.put();
    });
  }

  put() {
    const fresh = document.createDocumentFragment();
    let added = 0;
    for (const [id, { row, isNew }] of this.arrived) {
      const there = document.getElementById(id);
      if (there) there.querySelector("summary").replaceWith(row.querySelector("summary"));
      else if (isNew) {
        fresh.prepend(row);
        added += 1;
      }
    }
    this.arrived.clear();
    if (added) {
      this.feed.querySelector(".feed-empty")?.remove();
      this.feed.prepend(fresh);
      const surplus = this.feed.querySelectorAll(`.call:nth-child(n + ${MOST_ROWS + 1})`);
      surplus.forEach((row) => row.remove());
      this.more += surplus.length;
    }
    if (this.table) {
      this.counted?.replaceChildren(this.table);
      if (this.counted) this.feed.querySelector(".feed-empty")?.remove();
      this.table = null;
    }
    this.showLeft();
    document.dispatchEvent(new CustomEvent("postern:times", { detail: this.feed }));
    this.announce();
  }

  showLeft() {
    if (!this.left || !this.more) return;
    this.left.hidden = false;
    this.left.firstElementChild.textContent = `${this.isAtMost ? "Up to " : ""}${this.more.toLocaleString()} more ${this.more === 1 ? "call" : "calls"} came than this page lists.`;
    const chosen = this.chosen().toString();
    this.left.querySelector("a").href = this.left.dataset.liveHistory + (chosen && (this.left.dataset.liveHistory.includes("?") ? "&" : "?") + chosen);
  }

  // At most once a second, whatever comes: one sentence, in the page's one polite region.
  announce() {
    if (!this.news.length || this.saying) return;
    const sentence = () => {
      const news = this.news.splice(0);
      const last = news.at(-1);
      if (typeof last === "string") return last;
      if (news.length === 1) return last.querySelector("summary").innerText;
      const rejected = news.filter((row) => row.dataset?.status === "rejected").length;
      return `${news.length} calls came${rejected ? `, ${rejected} of them rejected` : ""}`;
    };
    say(sentence());
    this.saying = setTimeout(() => {
      this.saying = null;
      this.announce();
    }, SAY_EVERY);
  }

  tell(row) {
    const body = row.querySelector("[data-story]");
    if (!body) return;
    const url = body.dataset.story;
    body.removeAttribute("data-story");
    htmx.ajax("GET", url, { target: body, swap: "innerHTML" });
  }

  // --- pause and filter

  setPaused(paused) {
    this.paused = paused;
    this.pause.setAttribute("aria-pressed", String(paused));
    this.waiting = 0;
    this.news = [];
    if (paused) this.showWaiting();
    else {
      this.pause.textContent = "Pause";
      this.soon();
    }
  }

  showWaiting() {
    this.pause.textContent = this.waiting ? `Resume: ${this.waiting.toLocaleString()} waiting` : "Resume";
  }

  chosen() {
    const fields = [...new FormData(this.filter)].map(([name, value]) => [name, value.trim()]);
    return new URLSearchParams(fields.filter(([, value]) => value));
  }

  follow(chosen) {
    const url = new URL(this.begin, location.href);
    for (const name of ["status", "address", ...(this.filter.elements.webhook ? ["webhook"] : [])]) url.searchParams.delete(name);
    for (const [name, value] of chosen) url.searchParams.set(name, value);
    this.url = url.pathname + url.search;
  }

  choose() {
    const chosen = this.chosen();
    this.follow(chosen);
    history.replaceState(history.state, "", location.pathname + (chosen.size ? `?${chosen}` : ""));
    this.source?.close();
    this.forget();
    this.counted?.replaceChildren();
    if (this.left) this.left.hidden = true;
    const none = document.createElement("p");
    none.className = "feed-empty soft";
    none.hidden = true;
    none.textContent = chosen.size ? "No call like these has come yet." : "Nothing has come yet.";
    this.feed.replaceChildren(none);
    if (this.paused) this.setPaused(false);
    this.open();
  }

  // --- a tab that nobody sees

  leave() {
    this.source?.close();
    this.source = null;
    this.show("Paused", false);
    const since = this.ahead === undefined ? null : this.ahead + performance.now() / 1000;
    const about = new URL(this.url ?? this.begin, location.href).searchParams;
    if (since === null || !this.state) return; // a small feed beside a form does not call anybody back
    about.set("since", since.toFixed(3));
    const ask = async () => {
      const answer = await fetch(`/live/count?${about}`).catch(() => null);
      if (!answer?.ok || answer.redirected || !document.hidden) return;
      const { calls, orMore } = await answer.json();
      badge(calls ? `${calls.toLocaleString()}${orMore ? "+" : ""}` : "");
    };
    this.asking = setInterval(ask, COUNT_EVERY);
    setTimeout(ask, 1000);
  }

  comeBack() {
    clearInterval(this.asking);
    badge("");
    if (!this.source) this.open();
  }
}

const TITLE = document.title;

// What has come meanwhile, where a tab can show it: its title and its icon.
function badge(count) {
  document.title = count ? `(${count}) ${TITLE}` : TITLE;
  const icon = document.querySelector("link[rel=icon]");
  icon.dataset.usual ??= icon.getAttribute("href");
  icon.href = count ? icon.dataset.news : icon.dataset.usual;
}

// Calls as they come. Whatever arrives between two frames is put in place together, and the page holds no more than
// MOST_ROWS; above 20 calls a second the server counts them and sends a table instead.

import { say } from "./copy.js";

const DRAWER = matchMedia("(min-width: 85.001rem)"); // as in forms.css: it has a column of its own
const MOST_ROWS = 100; // as in views/history/live.py
const SAY_EVERY = 1000;
const COUNT_EVERY = 10_000;

export function start(selector) {
  for (const feed of document.querySelectorAll(selector)) {
    const line = feed.closest("details");
    if (line?.closest(".beside-settings") && DRAWER.matches) line.open = true;
    if (!line || line.open) new Feed(feed).open();
    // Beside a form the calls are one line, and nothing is asked for until somebody opens it.
    else line.addEventListener("toggle", () => new Feed(feed).open(), { once: true });
  }
}

class Feed {
  constructor(feed) {
    const box = feed.closest(".live-box");
    const part = (name) => box.querySelector(`[data-live-${name}]`);
    Object.assign(this, { feed, state: part("state"), counted: part("counted"), left: part("left") });
    this.none = feed.closest(".table-wrap").querySelector(".feed-empty");
    this.pulses = box.querySelectorAll(".pulse");
    this.url = feed.dataset.live;
    this.forget();
    // A hidden tab needs no stream, and browsers allow few of them: it asks now and then how many have come.
    document.addEventListener("visibilitychange", () => (document.hidden ? this.leave() : this.comeBack()));
    window.addEventListener("pagehide", () => this.source?.close());
  }

  forget() {
    this.arrived = new Map(); // by the row's id: what the next frame, or the end of the pause, puts in place
    this.table = null;
    this.more = 0;
    this.inTable = 0;
    this.news = [];
  }

  open() {
    this.show("Connecting…", false);
    this.source = new EventSource(this.url);
    this.source.addEventListener("call", (event) => this.take(event.data, true));
    this.source.addEventListener("moved", (event) => this.take(event.data, false));
    this.source.addEventListener("counted", (event) => this.takeTable(event.data));
    this.source.addEventListener("skipped", (event) => this.leaveOut(Number(event.data), true));
    this.source.addEventListener("listening", (event) => {
      this.inTable = 0; // another stream counts anew
      this.ahead = Number(event.data) - performance.now() / 1000;
      this.show("Listening", true);
      // All calls there are have been listed by now: only here is it known that there are none.
      this.none.hidden = Boolean(this.arrived.size || this.feed.rows.length);
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
    if (isNew && row.classList.contains("fresh")) this.news.push(row);
    else if (isNew && "counted" in row.dataset && !before && !document.getElementById(row.id)) this.more -= 1;
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
      // A row that is put in place between the press and its release would take the click with it.
      this.feed.matches(":active") ? this.soon() : this.put();
    });
  }

  put() {
    const fresh = document.createDocumentFragment();
    let added = 0;
    for (const [id, { row, isNew }] of this.arrived) {
      const there = document.getElementById(id);
      if (there) {
        // The row keeps its mark and stays the open one.
        const box = row.querySelector("[name=call]");
        if (box) box.checked = there.querySelector("[name=call]").checked;
        if (there.hasAttribute("aria-current")) row.setAttribute("aria-current", "true");
        row.classList.remove("fresh");
        row.came = there.came || isNew;
        there.replaceWith(row);
      } else if (isNew) {
        row.came = true;
        fresh.prepend(row);
        added += 1;
      }
    }
    this.arrived.clear();
    if (added) {
      this.none.hidden = true;
      this.feed.prepend(fresh);
      const surplus = this.feed.querySelectorAll(`tr:nth-child(n + ${MOST_ROWS + 1})`);
      surplus.forEach((row) => row.remove());
      this.more += [...surplus].filter((row) => row.came).length; // what the page began with did not come since
    }
    if (this.table) {
      this.counted?.replaceChildren(this.table);
      if (this.counted) this.none.hidden = true;
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
    this.left.querySelector("a").href = this.left.dataset.liveHistory;
  }

  // At most once a second, whatever comes: one sentence, in the page's one polite region.
  announce() {
    if (!this.news.length || this.saying) return;
    const sentence = () => {
      const news = this.news.splice(0);
      const last = news.at(-1);
      if (typeof last === "string") return last;
      if (news.length === 1) return last.innerText;
      const rejected = news.filter((row) => row.dataset?.status === "rejected").length;
      return `${news.length} calls came${rejected ? `, ${rejected} of them rejected` : ""}`;
    };
    say(sentence());
    this.saying = setTimeout(() => {
      this.saying = null;
      this.announce();
    }, SAY_EVERY);
  }

  // --- a tab that nobody sees

  leave() {
    this.source?.close();
    this.source = null;
    this.show("Paused", false);
    const since = this.ahead === undefined ? null : this.ahead + performance.now() / 1000;
    const about = new URL(this.url, location.href).searchParams;
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

// The title and the icon of the tab show how many calls have come meanwhile.
function badge(count) {
  document.title = count ? `(${count}) ${TITLE}` : TITLE;
  const icon = document.querySelector("link[rel=icon]");
  icon.dataset.usual ??= icon.getAttribute("href");
  icon.href = count ? icon.dataset.news : icon.dataset.usual;
}

// Calls as they come: each event carries a row; a row that is there already is replaced, and stays open.

import { say } from "./copy.js";

const MOST_ROWS = 100;

export function start(selector) {
  for (const feed of document.querySelectorAll(selector)) listen(feed);
}

function listen(feed) {
  let source = null;
  const state = document.querySelector("[data-live-state]");
  const tell = (text, live) => {
    if (state) state.textContent = text;
    document.querySelectorAll(".pulse").forEach((pulse) => pulse.classList.toggle("on", live));
  };

  const open = () => {
    source = new EventSource(feed.dataset.live);
    source.addEventListener("call", (event) => put(feed, event.data));
    source.addEventListener("listening", () => tell("Listening", true));
    // A stream that is closed for good was refused: most often nobody is signed in here any more.
    source.addEventListener("error", () => tell(source.readyState === EventSource.CLOSED ? "Stopped. Reload the page to go on." : "Reconnecting…", false));
  };

  // A hidden tab needs no stream, and browsers allow few of them.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source?.close();
      source = null;
      tell("Paused", false);
    } else if (!source) open();
  });
  window.addEventListener("pagehide", () => source?.close());
  open();
}

function put(feed, markup) {
  const template = document.createElement("template");
  template.innerHTML = markup.trim();
  const row = template.content.firstElementChild;
  const there = document.getElementById(row.id);
  if (there) {
    there.querySelector("summary").replaceWith(row.querySelector("summary"));
    document.dispatchEvent(new Event("postern:times"));
    return;
  }
  feed.querySelector(".feed-empty")?.remove();
  feed.prepend(row);
  document.dispatchEvent(new Event("postern:times"));
  htmx.process(row);
  while (feed.children.length > MOST_ROWS) feed.lastElementChild.remove();
  if (row.classList.contains("fresh")) say(row.querySelector("summary").innerText);
}

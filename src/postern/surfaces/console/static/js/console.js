// The entry: what every page has. Everything works on elements that come later too, since pages swap parts of themselves.

import { copying } from "./copy.js";
import { times } from "./times.js";
import { marks } from "./marks.js";
import { guard } from "./guard.js";
import { keys } from "./keys.js";

copying();
times();
marks();
keys();

// On a narrow screen the row of tabs goes on sideways: the one that is open is in sight.
for (const tab of document.querySelectorAll(".tabs [aria-current]")) tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 24;

// A page that answered a form takes the address it is found at, so that reloading it does not send the form again.
for (const own of document.querySelectorAll("[data-address]")) {
  history.replaceState(history.state, "", own.dataset.address);
  own.closest(".card")?.scrollIntoView();
}

const wanted = {
  "[data-chart]": "./charts.js",
  "[data-filter]": "./filter.js",
  "[data-shows], [data-decides], [data-live], .calls-page": "./shows.js",
  "#map": "./mapper.js",
  "[data-live]": "./live.js",
  "table.calls": "./calls.js",
  "#q": "./asked.js",
  "[data-fill]": "./fill.js",
  "[data-secret-form], [data-judged-by]": "./secrets.js",
  "[data-picker]": "./picker.js",
  "[data-many]": "./many.js",
};

// A page fetches only what it uses.
const fetched = Object.entries(wanted)
  .filter(([selector]) => document.querySelector(selector))
  .map(async ([selector, module]) => (await import(module)).start(selector));
guard(Promise.allSettled(fetched));

// The entry: what every page has. Everything works on elements that come later too, since pages swap parts of themselves.

import { copying } from "./copy.js";
import { times } from "./times.js";
import { marks } from "./marks.js";
import { guard, inSight } from "./guard.js";
import { keys } from "./keys.js";
import { once } from "./once.js";
import * as asked from "./asked.js";
import * as calls from "./calls.js";
import * as charts from "./charts.js";
import * as fill from "./fill.js";
import * as filter from "./filter.js";
import * as live from "./live.js";
import * as many from "./many.js";
import * as mapper from "./mapper.js";
import * as rows from "./rows.js";
import * as secrets from "./secrets.js";
import * as shows from "./shows.js";

copying();
times();
marks();
once();
keys();

// On a narrow screen the row of tabs goes on sideways: the one that is open is in sight.
for (const tab of document.querySelectorAll(".tabs [aria-current]")) tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 24;

// A page that answered a form takes the address it is found at, so that reloading it does not send the form again.
for (const own of document.querySelectorAll("[data-address]")) {
  history.replaceState(history.state, "", own.dataset.address);
  own.closest(".card")?.scrollIntoView();
}

// A form with such a field is sent as soon as a value is chosen.
document.addEventListener("change", (event) => event.target.matches("[data-submits]") && event.target.form.requestSubmit());

// The index of a long page marks the part that is read.
function follow() {
  const links = [...document.querySelectorAll("[data-index] a")];
  const top = (link) => document.getElementById(link.hash.slice(1))?.getBoundingClientRect().top;
  // The last sections never reach the top of the window.
  const isEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
  const last = isEnd ? links.find((one) => one.hash === location.hash && top(one) > 0) ?? links.at(-1) : null;
  const at = last ?? links.findLast((one) => top(one) < 120) ?? links[0];
  for (const one of links) one === at ? one.setAttribute("aria-current", "true") : one.removeAttribute("aria-current");
}
if (document.querySelector("[data-index]")) {
  addEventListener("scroll", follow, { passive: true });
  follow();
}

// A part that an address names is open.
const reveal = () => inSight(document.getElementById(location.hash.slice(1)));
reveal();
addEventListener("hashchange", reveal);

// All scripts are here before the page is ready: one that came later would miss the first keys and clicks.
const parts = [
  ["[data-chart]", charts],
  ["[data-filter]", filter],
  ["[data-shows], [data-decides], [data-live], .calls-page", shows],
  ["#map, #slots", mapper],
  ["#rows", rows],
  ["[data-live]", live],
  ["table.calls", calls],
  ["#q", asked],
  ["[data-fill]", fill],
  ["[data-secret-form], [data-judged-by], [data-eye]", secrets],
  ["[data-many]", many],
];
for (const [selector, part] of parts) if (document.querySelector(selector)) part.start(selector);
guard(); // the last: what it gives back is shown and enabled by the others

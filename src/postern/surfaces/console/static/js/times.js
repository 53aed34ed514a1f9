// "3 minutes ago" stays true while the page is open, and the exact time is the reader's own.

const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

export function times() {
  show();
  setInterval(() => show(), 15_000);
  document.addEventListener("htmx:after:swap", () => show());
  document.addEventListener("postern:times", (event) => show(event.detail));
  // A time that is picked is the reader's own, and is sent as one that everybody reads alike.
  document.addEventListener("formdata", ({ target, formData }) => {
    for (const field of target.querySelectorAll(`${PICKED}[name]`)) if (field.value) formData.set(field.name, new Date(ZONE === "UTC" ? `${field.value}Z` : field.value).toISOString());
  });
}

const EXACT = { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZoneName: "short" };

const PICKED = 'input[type="datetime-local"]';

// One zone for all times of a page: the reader's own, or UTC where that was chosen.
export const ZONE = document.documentElement.dataset.times === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
const MOMENT = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone: ZONE };

function exact(iso) {
  return EXACTLY.format(new Date(iso));
}

// A way of writing times costs a hundred times what using it does.
const CLOCKS = [{}, { second: "2-digit" }].map((seconds) => new Intl.DateTimeFormat(undefined, { ...MOMENT, second: undefined, ...seconds }));
const EXACTLY = new Intl.DateTimeFormat(undefined, { ...EXACT, timeZone: ZONE });
const DAYS = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", year: "numeric", timeZone: ZONE });
const SHORT = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: ZONE });
const TODAY = new Intl.DateTimeFormat(undefined, MOMENT);
const MOMENTS = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", ...MOMENT });

function show(within = document) {
  const now = Date.now(), today = DAYS.format(now);
  for (const time of within.querySelectorAll("time[data-ago]")) {
    const then = new Date(time.dateTime);
    const seconds = (now - then) / 1000;
    // A reader's clock may be slow: what the gateway says has been is not said to come.
    const comes = time.textContent.startsWith("in ");
    if (seconds >= 0 || (seconds > -60 && !comes)) time.textContent = ago(seconds, then);
    else if (seconds > -60) time.textContent = "in less than a minute";
    time.title = exact(time.dateTime);
  }
  for (const time of within.querySelectorAll("time[data-clock]")) {
    time.textContent = CLOCKS[time.dataset.clock === "seconds" ? 1 : 0].format(new Date(time.dateTime));
    time.title = exact(time.dateTime);
  }
  for (const time of within.querySelectorAll("time[data-moment]")) {
    const then = new Date(time.dateTime), isToday = DAYS.format(then) === today;
    const minutes = `${isToday ? "" : `${SHORT.format(then)}, `}${CLOCKS[0].format(then)}`;
    time.textContent = time.dataset.moment === "minute" ? minutes : (isToday || time.dataset.moment === "row" ? TODAY : MOMENTS).format(then);
    time.title = exact(time.dateTime);
  }
  // A list says the day where it begins, and today not at all.
  for (const body of document.querySelectorAll("table.calls tbody")) {
    let before = SHORT.format(now);
    for (const row of body.querySelectorAll("tr:not([hidden])")) {
      const time = row.querySelector("time"), day = SHORT.format(new Date(time.dateTime));
      if (day === before) delete time.dataset.day;
      else time.dataset.day = day;
      before = day;
    }
  }
  for (const time of within.querySelectorAll("time[data-exact]")) time.textContent = exact(time.dateTime);
  for (const option of within.querySelectorAll("option[data-at]")) {
    option.textContent = `${exact(option.dataset.at)}: ${option.dataset.what}`;
  }
  for (const field of within.querySelectorAll(`${PICKED}[data-at]`)) {
    const then = new Date(field.dataset.at);
    field.value = new Date(then - (ZONE === "UTC" ? 0 : then.getTimezoneOffset() * 60_000)).toISOString().slice(0, 16);
    delete field.dataset.at;
  }
  for (const zone of within.querySelectorAll("[data-zone]")) {
    zone.textContent = ZONE;
  }
  for (const field of within.querySelectorAll("[data-own-zone]")) {
    if (!field.value || field.type === "hidden") field.value = field.defaultValue = ZONE;
  }
}

function ago(seconds, then) {
  if (seconds < 5) return "just now";
  if (seconds > 7 * 86400) return then.toLocaleDateString(undefined, { dateStyle: "medium", timeZone: ZONE });
  const [unit, size] = UNITS.find(([, size]) => seconds >= size);
  const count = Math.floor(seconds / size);
  return `${count} ${unit}${count === 1 ? "" : "s"} ago`;
}

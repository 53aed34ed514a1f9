// "3 minutes ago" stays true while the page is open, and the exact time is the reader's own.

const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];

export function times() {
  show();
  setInterval(show, 15_000);
  document.addEventListener("htmx:after:swap", show);
  document.addEventListener("postern:times", show);
}

const EXACT = { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" };

// One zone for all times of a page: the reader's own, or UTC where that was chosen.
const ZONE = document.documentElement.dataset.times === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
const MOMENT = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, timeZone: ZONE };

function exact(iso) {
  return new Date(iso).toLocaleString(undefined, { ...EXACT, timeZone: ZONE });
}

function show() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const then = new Date(time.dateTime);
    const seconds = (now - then) / 1000;
    if (seconds > -60) time.textContent = ago(seconds, then);
    time.title = exact(time.dateTime);
  }
  for (const time of document.querySelectorAll("time[data-clock]")) {
    const seconds = time.dataset.clock === "seconds" ? { second: "2-digit" } : {};
    time.textContent = new Date(time.dateTime).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", ...seconds, timeZone: ZONE });
    time.title = exact(time.dateTime);
  }
  for (const time of document.querySelectorAll("time[data-moment]")) {
    time.textContent = new Date(time.dateTime).toLocaleString(undefined, MOMENT);
    time.title = exact(time.dateTime);
  }
  for (const time of document.querySelectorAll("time[data-exact]")) time.textContent = exact(time.dateTime);
  for (const option of document.querySelectorAll("option[data-at]")) {
    option.textContent = `${exact(option.dataset.at)}: ${option.dataset.what}`;
  }
  for (const zone of document.querySelectorAll("[data-zone]")) {
    zone.textContent = ZONE;
  }
}

function ago(seconds, then) {
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds > 7 * 86400) return then.toLocaleDateString(undefined, { dateStyle: "medium" });
  const [unit, size] = UNITS.find(([, size]) => seconds >= size);
  const count = Math.floor(seconds / size);
  return `${count} ${unit}${count === 1 ? "" : "s"} ago`;
}

// "3 minutes ago" stays true while the page is open, and the exact time is the reader's own.

const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];

export function times() {
  show();
  setInterval(show, 15_000);
  document.addEventListener("htmx:after:swap", show);
}

function show() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const then = new Date(time.dateTime);
    const seconds = (now - then) / 1000;
    if (seconds > -60) time.textContent = ago(seconds, then);
    time.title = then.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
  }
  for (const time of document.querySelectorAll("time[data-clock]")) {
    time.textContent = new Date(time.dateTime).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  }
  for (const time of document.querySelectorAll("time[data-exact]")) {
    time.textContent = new Date(time.dateTime).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
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

// The list of calls: a row opens beside the list where there is room, keys walk through it, marked ones have a bar, and a time is
// chosen by drawing over the strip.

const WIDE = matchMedia("(min-width: 1200px)");
const rows = () => [...document.querySelectorAll("table.calls tbody tr:not([hidden])")];
const current = () => document.querySelector("table.calls tr[aria-current]");

export function start() {
  columns();
  document.addEventListener("click", (event) => {
    const link = event.target.closest("table.calls a.opens");
    const plain = !event.button && !event.ctrlKey && !event.metaKey && !event.shiftKey;
    if (link && plain && open(link.closest("tr"))) event.preventDefault();
    if (event.target.closest("[data-close-panel]") && close()) event.preventDefault();
    // A button of the bar applies to the marked calls that it can do something with; marks of others are taken away.
    const button = event.target.closest("#marked button");
    const of = { replay: (box) => !isRejected(box), admit: isRejected, export: () => true }[button?.value] ?? (() => false);
    if (button) for (const box of marks()) box.checked = of(box);
    if (button?.type === "button") showMarked();
  });
  document.addEventListener("change", (event) => event.target.name === "call" && showMarked());
  document.addEventListener("keydown", press);
  window.addEventListener("popstate", () => location.reload());
  document.addEventListener("pointerdown", draw);
  document.addEventListener("htmx:after:swap", follow);
  reopen();
}

// A row says what became of its call beside it.
function follow() {
  if (document.querySelector(".calls-page.with-panel")) document.getElementById(location.hash.slice(1))?.setAttribute("aria-current", "true");
  const call = document.querySelector(".calls-page [data-panel] #call");
  const [badge, row] = [call?.querySelector("h1 .badge"), call && document.getElementById(`call-${call.dataset.id}`)];
  const state = row?.querySelector("td.state :is(.badge, .state-mark)");
  const tone = (one) => one?.className.replace(/badge|state-mark/, "").trim();
  if (!badge || !state || tone(badge) === tone(state)) return;
  row.dataset.status = call.dataset.status;
  const mark = badge.cloneNode(true);
  if (badge.matches(".good, .info")) mark.className = badge.className.replace("badge", "state-mark"), mark.title = mark.textContent, mark.replaceChildren(Object.assign(document.createElement("span"), { className: "out-of-sight", textContent: mark.title }));
  state.replaceWith(mark);
}

function open(row) {
  const list = row.closest(".calls-page");
  const panel = (list ?? row.closest(".live-box, section"))?.querySelector("[data-panel]");
  if (!panel || (list && !WIDE.matches)) return false;
  const href = row.querySelector("a.opens").href;
  current()?.removeAttribute("aria-current");
  row.setAttribute("aria-current", "true");
  if (list) {
    const here = `${list.dataset.calls}#${row.id}`;
    if (list.classList.contains("with-panel")) history.replaceState(history.state, "", here);
    else history.pushState({ call: true }, "", here);
  }
  show(panel, href);
  row.scrollIntoView({ block: "nearest" });
  return true;
}

// The call before goes at once: its buttons must not stand beside the address of another one.
function show(panel, href) {
  panel.closest(".calls-page")?.classList.add("with-panel");
  panel.dataset.about = href;
  const told = Object.assign(document.createElement("p"), { className: "soft", textContent: "Loading…" });
  told.setAttribute("role", "status");
  panel.replaceChildren(told);
  htmx.ajax("GET", href, { target: panel, select: "#call", swap: "innerHTML" }).catch(() => {}).then(() => {
    if (told.isConnected && panel.dataset.about === href) told.textContent = "This call cannot be shown now: open it again in a moment.";
  });
}

// An address that was reloaded, or handed on, opens its call beside the list, or by itself where there is no room.
function reopen() {
  const id = location.hash.match(/^#call-(inv_[0-9a-f]{32})$/)?.[1];
  const panel = id && document.querySelector(".calls-page [data-panel]");
  if (!panel) return;
  if (!WIDE.matches) return location.replace(`/calls/${id}`);
  document.getElementById(`call-${id}`)?.setAttribute("aria-current", "true");
  show(panel, `/calls/${id}`);
}

function close() {
  const panel = [...document.querySelectorAll("[data-panel]")].find((one) => one.children.length);
  if (!panel) return false;
  panel.replaceChildren();
  const list = panel.closest(".calls-page");
  list?.classList.remove("with-panel");
  if (list) history.replaceState(history.state, "", list.dataset.calls);
  current()?.querySelector("a.opens").focus();
  return true;
}

// --- keys

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog:modal")) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
  if (!document.querySelector("[data-panel]")) return;
  const row = current() ?? document.activeElement.closest?.("table.calls tr");
  const deed = { j: () => step(row, 1), k: () => step(row, -1), x: () => mark(row), "?": () => document.getElementById("keys")?.showModal(), Escape: close }[event.key];
  if (deed && deed() !== false) event.preventDefault();
}

function step(row, by) {
  const all = rows();
  const next = all[row ? Math.max(0, Math.min(all.length - 1, all.indexOf(row) + by)) : 0];
  if (!next) return;
  if (document.querySelector(".calls-page.with-panel")) open(next);
  else {
    current()?.removeAttribute("aria-current");
    next.setAttribute("aria-current", "true");
  }
  next.querySelector("a.opens").focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

// --- columns, which this browser keeps: the names of the boxes that are not as the page has them

function columns() {
  let others = new Set();
  const show = () => (document.documentElement.dataset.columns = [...others].join(" "));
  try {
    others = new Set((localStorage.getItem("columns") ?? "").split(" "));
  } catch {} // a browser may keep nothing
  show();
  document.addEventListener("beforetoggle", (event) => {
    for (const box of event.target.querySelectorAll("[data-column]")) {
      box.checked = box.defaultChecked !== others.has(box.dataset.column);
      box.closest("fieldset").hidden = false;
    }
  }, true);
  document.addEventListener("change", ({ target }) => {
    if (!target.dataset.column) return;
    others[target.checked === target.defaultChecked ? "delete" : "add"](target.dataset.column);
    show();
    try {
      localStorage.setItem("columns", [...others].join(" "));
    } catch {}
  });
}

// --- marks

const isRejected = (box) => box.closest("tr").dataset.status === "rejected";
const marks = () => [...document.querySelectorAll("table.calls [name=call]:checked")];

function mark(row) {
  const box = row?.querySelector("[name=call]");
  if (!box) return;
  box.checked = !box.checked;
  showMarked();
}

function showMarked() {
  const bar = document.getElementById("marked");
  if (!bar) return;
  const marked = marks();
  bar.hidden = !marked.length;
  const rejected = marked.filter(isRejected).length;
  bar.querySelector("[data-marked-count]").textContent = `${marked.length} marked`;
  for (const [value, count] of [["replay", marked.length - rejected], ["admit", rejected]]) {
    const button = bar.querySelector(`[value=${value}]`);
    button.hidden = !count;
    button.querySelector("span").textContent = count;
  }
}

// --- the strip

function draw(event) {
  const strip = event.target.closest("[data-strip]");
  if (!strip || event.button) return;
  const box = strip.querySelector("svg").getBoundingClientRect();
  const at = (x) => Math.max(0, Math.min(1, (x - box.left) / box.width));
  const brush = document.createElement("i");
  const begun = at(event.clientX);
  brush.className = "brush";
  strip.append(brush);
  const show = (to) => {
    brush.style.insetInlineStart = `${100 * Math.min(begun, to)}%`;
    brush.style.inlineSize = `${100 * Math.abs(to - begun)}%`;
  };
  const move = (moved) => show(at(moved.clientX));
  const end = (ended) => {
    removeEventListener("pointermove", move);
    brush.remove();
    const bars = Number(strip.dataset.bars);
    let [from, to] = [begun, at(ended.clientX)].sort((a, b) => a - b);
    if (ended.type !== "pointerup" || to - from < 0.01) return;
    [from, to] = [Math.floor(from * bars) / bars, Math.ceil(to * bars) / bars]; // a bar is chosen as a whole
    const [since, until] = [strip.dataset.since, strip.dataset.until].map((text) => Date.parse(text));
    const moment = (part) => new Date(since + part * (until - since)).toISOString().replace(/\.\d+Z/, "Z");
    const field = document.getElementById("q");
    field.value = `after:${moment(from)} before:${moment(to)} ${field.value}`.trim();
    field.form.requestSubmit();
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", end, { once: true });
  event.preventDefault();
}

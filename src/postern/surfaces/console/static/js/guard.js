// The browser asks before text that was typed and not saved is lost. Text that could not be saved, because the session had ended
// or the database was away, is given back where it was typed. It stays in this tab, for the same user, and secrets are never kept.

const KEY = "postern-typed";
const user = () => document.querySelector("[data-user]")?.dataset.user;

const changed = new Set();
const saved = new WeakMap(); // by control, where what its page came with is not what is saved
let sent = [];

// Something in it is not saved: it says so, and its bar comes into sight and counts.
export function touched(form) {
  changed.add(form);
  form.dataset.changed = "";
  const count = new Set([...form.elements].filter((one) => one.name && one.type !== "hidden" && now(one) !== before(one)).map((one) => one.name)).size;
  for (const place of form.querySelectorAll("[data-count]")) place.textContent = count ? `${count} ${count === 1 ? "change" : "changes"}` : "";
}

const isUnsaved = () => [...changed].some((form) => form.isConnected);
const isUnderWay = () => sent.some((form) => form.isConnected);
const isChoice = (one) => ["checkbox", "radio"].includes(one.type);
const now = (one) => (isChoice(one) ? one.checked : one.value);
const asItCame = (one) => (isChoice(one) ? one.defaultChecked : one.options ? ([...one.options].find((each) => each.defaultSelected) ?? one.options[0])?.value : one.defaultValue);
const before = (one) => (saved.has(one) ? saved.get(one) : asItCame(one));

// It could not be sent: what was typed is still not saved.
export const unsent = () => sent.forEach(touched);

// Opens each folded part that the element lies in.
export function inSight(element) {
  for (let part = element?.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
}

export function guard() {
  const of = ({ target }) => (target.form ?? target.closest?.("form"))?.closest("main form[method=post]:not([data-loose])");

  for (const kind of ["input", "change"]) {
    document.addEventListener(kind, (event) => {
      const form = of(event);
      if (form && event.isTrusted) touched(form);
    });
  }
  document.addEventListener("submit", (event) => {
    sent = [...changed];
    changed.clear();
    const form = of(event);
    if (form) keep(form);
    for (const one of form?.elements ?? []) if (!saved.has(one)) saved.set(one, asItCame(one));
  });
  // An answer in place: what was not saved stays so.
  document.addEventListener("htmx:after:swap", ({ detail }) => {
    if (detail.ctx?.sourceElement?.matches("[data-discard]")) forget(document.getElementById("settings"));
    const wrong = document.querySelector("#settings [aria-invalid=true], #settings .wrong");
    const form = document.getElementById("settings");
    if (wrong && form) touched(form);
    else if (form && !("changed" in form.dataset)) [...form.elements].forEach((one) => saved.delete(one));
    inSight(wrong);
    if (form && detail.ctx?.sourceElement === form) wrong?.scrollIntoView({ block: "center" });
    if (document.querySelector("[data-unsaved]")) giveBack();
  });
  // The session has ended: what a page asks for by itself leads nobody away from what they typed. Sending it does, and keeps it.
  document.addEventListener("htmx:before:response", (event) => {
    const { hx, sourceElement } = event.detail.ctx;
    if (hx.redirect && !sourceElement.matches("form, a, button") && (isUnsaved() || isUnderWay())) event.preventDefault();
  });
  document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
    if (ctx.sourceElement?.matches("form") && ctx.response.status < 400) sent = [];
  });
  window.addEventListener("beforeunload", (event) => {
    if (isUnsaved()) event.preventDefault();
  });
  giveBack();
}

// Everything is as it is saved.
function forget(form) {
  form.reset();
  changed.delete(form);
  for (const one of form.querySelectorAll("select[data-decides], [data-decides]:checked")) one.dispatchEvent(new Event("change", { bubbles: true }));
}

const isPlain = (one) => one.name && !one.disabled && !["password", "file", "submit", "button"].includes(one.type) && !one.closest("[data-secret], .slot:has([data-eye])");

function keep(form) {
  const fields = [...form.elements].filter(isPlain).map(({ name, type, value, checked }) => ({ name, type, value, checked }));
  if (!user() || fields.every((one) => one.type === "hidden")) return;
  put({ user: user(), path: location.pathname, action: form.getAttribute("action"), fields });
}

function put(typed) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(typed));
  } catch {
    sessionStorage.removeItem(KEY); // more than there is room for
  }
}

function giveBack() {
  const typed = JSON.parse(sessionStorage.getItem(KEY) ?? "null");
  if (!typed) return;
  if (location.pathname === "/sign-in") {
    if (new URLSearchParams(location.search).get("ended") === "unsaved") put({ ...typed, why: "Your session had ended before this was saved." });
    document.querySelectorAll("[data-kept]").forEach((one) => (one.hidden = false));
    return;
  }
  // On a page that says so nobody may be known, because the database is away.
  if (document.querySelector("[data-unsaved]")) return put({ ...typed, why: "This was not saved." });
  if (typed.user !== user()) return sessionStorage.removeItem(KEY);
  if (!typed.why) return sessionStorage.removeItem(KEY);
  const form = [...document.forms].find((one) => one.getAttribute("action") === typed.action);
  if (form) fillIn(form, typed);
}

function fillIn(form, typed) {
  sessionStorage.removeItem(KEY);
  for (const field of typed.fields) fill(form, field);
  touched(form);
  const note = document.createElement("div");
  note.className = "notice note warn";
  note.setAttribute("role", "status");
  note.textContent = `${typed.why} What you typed is here again, but for secrets.`;
  document.getElementById("main").prepend(note);
}

// Controls that others depend on come before those, so that these are shown and enabled when it is their turn.
function fill(form, { name, type, value, checked }) {
  for (const one of form.elements) {
    if (one.name !== name || one.type !== type || one.disabled || (isChoice(one) && one.value !== value)) continue;
    if (isChoice(one) ? one.checked !== checked : one.value !== value) inSight(one);
    if (isChoice(one)) one.checked = checked;
    else one.value = value;
    if (!isChoice(one) || checked) one.dispatchEvent(new Event("change", { bubbles: true }));
  }
}

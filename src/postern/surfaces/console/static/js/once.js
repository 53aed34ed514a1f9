// A form that acts is sent once: its buttons rest while it is asked, and a second press does not land on what has just come in
// the place of the first. What could not be done is said beside the button that was pressed.

import { unsent } from "./guard.js";

const LONGEST_WAIT = 30_000; // a page that somebody has stopped tells nobody
const DOUBLE_CLICK = 600;
const AWAY = "The gateway did not answer. Nothing that you typed is lost: try again.";
const failed = (status) => `The gateway answered ${status}. Nothing that you typed is lost: try again.`;

let pressed, came, at;
const reached = new WeakSet();
const resting = new Set(); // a mark on the button would not outlive a page that is put in its place
const isPost = (form) => form?.matches?.("form[method=post]"); // a field may be called method
const buttonsOf = (form) => [...form.elements].filter((one) => one.type === "submit" && !one.disabled);

export function once() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button:not([type=button])");
    const isThere = event.detail && at && Math.hypot(event.clientX - at.x, event.clientY - at.y) < 8;
    if (button && button !== pressed && isThere && came && Date.now() - came.at < DOUBLE_CLICK && came.place.contains(button)) event.preventDefault();
    at = { x: event.clientX, y: event.clientY };
  }, true);

  document.addEventListener("submit", (event) => {
    if (![...event.target.elements].some((one) => resting.has(one))) return void (pressed = event.submitter);
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!isPost(form) || event.defaultPrevented) return;
    if (!reached.delete(form)) return void reach(event);
    // After the browser has read which button it was. A file that is taken along leaves the page as it is.
    const wait = pressed?.value === "export" ? 2000 : LONGEST_WAIT;
    setTimeout(() => setTimeout(rest(form), wait));
  });
  window.addEventListener("pageshow", () => resting.forEach(wake));

  // Whatever else was pressed, like a filter, has no other place to say it.
  const pressedOr = ({ detail: { ctx } }) => !isPost(ctx?.sourceElement) && ctx?.sourceElement?.matches("form, a, button") && ctx;
  document.addEventListener("htmx:after:request", (event) => {
    const ctx = pressedOr(event);
    if (ctx) ctx.response.status >= 500 ? sayHere(ctx.sourceElement, null, whyIn(ctx.text) ?? failed(ctx.response.status)) : unsay(ctx.sourceElement);
  });
  document.addEventListener("htmx:error", (event) => {
    const ctx = pressedOr(event);
    if (ctx) sayHere(ctx.sourceElement, null, AWAY);
  });
  const asked = (event, then) => isPost(event.detail?.ctx?.sourceElement) && then(event.detail.ctx.sourceElement, event.detail.ctx);
  document.addEventListener("htmx:before:request", (event) => asked(event, (form, ctx) => {
    unsay(form);
    ctx.pressed = pressed;
    ctx.wake = rest(form);
  }));
  document.addEventListener("htmx:after:swap", (event) => asked(event, (_, { target }) => {
    const place = target?.isConnected ? target : document.getElementById(target?.id);
    if (place) came = { at: Date.now(), place };
  }));
  document.addEventListener("htmx:after:request", (event) => asked(event, (form, { response, text, pressed }) => {
    if (response.status >= 500) return sayHere(form, pressed, whyIn(text) ?? failed(response.status));
    // The form stays, and what it asks for next is something else.
    if (response.status < 400 && form.elements.once) form.elements.once.value = crypto.getRandomValues(new Uint32Array(2)).reduce((text, one) => text + one.toString(16), "");
  }));
  document.addEventListener("htmx:error", (event) => asked(event, (form, { pressed }) => sayHere(form, pressed, AWAY)));
  document.addEventListener("htmx:finally:request", (event) => asked(event, (_, { wake }) => wake?.()));
}

// A page that is left for one that does not come has lost what was typed: the gateway is asked first whether it is there.
async function reach(event) {
  event.preventDefault();
  const { target: form, submitter } = event;
  unsay(form);
  const wakeUp = rest(form);
  const answer = await fetch("/healthz", { cache: "no-store" }).catch(() => null);
  wakeUp();
  if (!answer || answer.status >= 500) return sayHere(form, submitter, answer ? failed(answer.status) : AWAY);
  reached.add(form);
  form.requestSubmit(submitter);
}

// Returns what ends the rest. The focus comes back, which a disabled button loses.
function rest(form) {
  const focused = document.activeElement;
  const own = buttonsOf(form);
  for (const one of own) {
    one.disabled = true;
    resting.add(one);
  }
  return () => {
    own.forEach(wake);
    if (document.activeElement === document.body && own.includes(focused)) focused.focus();
  };
}

function wake(button) {
  if (resting.delete(button)) button.disabled = false;
}

// A page that was not put in place says it.
function whyIn(text) {
  const said = new DOMParser().parseFromString(text, "text/html").querySelectorAll("main [role=alert]:not([hidden])");
  return [...said].at(-1)?.textContent.trim();
}

function sayHere(form, button, text) {
  unsay(form);
  unsent();
  const bar = form.closest("form")?.querySelector(".save-bar");
  const line = bar?.querySelector("p") ?? document.createElement("p");
  line.textContent = text;
  line.dataset.inVain = "";
  line.setAttribute("role", "alert");
  line.classList.add(bar ? "unsaved" : "wrong");
  if (bar) bar.classList.add("said");
  else (button?.isConnected ? button : form).after(line);
}

function unsay(form) {
  const bar = form.closest("form")?.querySelector(".save-bar");
  for (const line of document.querySelectorAll("[data-in-vain]")) {
    if (line.closest(".save-bar") === bar && bar) line.textContent = "";
    else if (!line.closest(".save-bar")) line.remove();
  }
}

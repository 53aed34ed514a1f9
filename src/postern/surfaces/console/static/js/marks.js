// Small manners: what is being fetched is busy until it is there.

import { say } from "./copy.js";

const ASKED_AGAIN = 5000; // as in visit.py
let again, asked;

export function marks() {

  // Duplicates are below their first call.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-unfold]");
    if (!button) return;
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    for (const row of document.querySelectorAll(`tr[data-of="${button.dataset.unfold}"]`)) row.hidden = !open;
  });

  // A part that is being fetched is marked as busy until it is there; a part that asks again by itself is not.
  const place = (event) => {
    const { sourceElement, target } = event.detail?.ctx ?? {};
    const asks = sourceElement?.getAttribute?.("hx-trigger") ?? "";
    return /every|load/.test(asks) || typeof target?.setAttribute !== "function" ? null : target;
  };
  document.addEventListener("htmx:before:request", (event) => place(event)?.setAttribute("aria-busy", "true"));
  // Whoever asked may have been swapped away by the answer, and then hears the last of these no more.
  for (const end of ["htmx:after:swap", "htmx:finally:request"]) document.addEventListener(end, (event) => place(event)?.removeAttribute("aria-busy"));

  // While the database is away parts stay as they are. What asks again by itself goes on doing so; a filter, and what asks once,
  // are asked again.
  document.addEventListener("htmx:after:request", (event) => {
    const { sourceElement, response } = event.detail?.ctx ?? {};
    const isAway = response?.status === 503;
    const line = document.getElementById("away");
    if (line) line.hidden = !isAway || sourceElement?.matches?.("form[method=post]"); // beside its button it is said already
    if (isAway && sourceElement?.matches?.("form.filters, form.asked")) {
      clearTimeout(again);
      again = setTimeout(() => (sourceElement.id === "asked" ? sourceElement.requestSubmit() : htmx.trigger(sourceElement, "input")), ASKED_AGAIN);
    }
    if (isAway && /load|once/.test(sourceElement?.getAttribute?.("hx-trigger") ?? "")) setTimeout(() => anew(sourceElement), ASKED_AGAIN);
  });

  // What is pressed stays until it is let go: put elsewhere, or made anew, it would not hear the click. The part asks again soon.
  document.addEventListener("htmx:before:swap", (event) => {
    const { sourceElement, target } = event.detail.ctx;
    if (/every/.test(sourceElement?.getAttribute?.("hx-trigger")) && target?.matches?.(":active")) event.preventDefault();
  });

  // A search that goes on by itself is stopped; the way on from there stays.
  document.addEventListener("click", (event) => {
    const looking = event.target.closest("[data-stop]")?.closest("[data-looking]");
    if (!looking) return;
    htmx.trigger(looking, "htmx:abort");
    const stopped = document.createElement("div");
    stopped.className = looking.className;
    stopped.append(...looking.childNodes);
    stopped.querySelector("[data-stop]").remove();
    looking.replaceWith(stopped);
    say("Stopped");
  });

  // A question that was asked for opens as a dialog; its way back closes it.
  document.addEventListener("htmx:after:swap", (event) => {
    const dialog = document.getElementById("question");
    if (!dialog?.firstElementChild || dialog.open) return;
    asked = event.detail?.ctx?.pressed ?? document.activeElement; // a button that rests has lost the focus
    dialog.showModal();
  });
  document.addEventListener("click", (event) => {
    const dialog = event.target.closest("[data-close]")?.closest("dialog");
    if (!dialog) return;
    event.preventDefault();
    dialog.close();
  });
  document.getElementById("question")?.addEventListener("close", (event) => {
    event.target.replaceChildren();
    // The button was in a menu, which is hidden now: the focus goes back to the menu's button.
    const menu = asked?.closest("[popover]");
    if (menu) document.querySelector(`[popovertarget="${menu.id}"]`)?.focus();
  });
}

// An element that asks once has asked; one like it has not.
function anew(element) {
  if (!element.isConnected) return;
  const other = element.cloneNode(true);
  other.removeAttribute("data-htmx-powered");
  element.replaceWith(other);
  htmx.process(other);
  const folder = other.closest("details");
  if (folder?.open) htmx.trigger(folder, "toggle");
}

// A value in a tree was clicked. Where a mapping is being edited it goes into the next free slot; elsewhere the menu that opens
// takes its path along, to be copied or mapped.

import { say } from "./copy.js";
import { touched } from "./guard.js";

const slots = () => [...document.querySelectorAll("#slots .slot input")];

export function start() {
  document.addEventListener("click", (event) => {
    const leaf = event.target.closest("[data-map]");
    if (leaf) (slots().length ? fill : offer)(leaf);
    const undo = event.target.closest("[data-undo]");
    if (!undo) return;
    const slot = document.getElementById(undo.dataset.undo);
    put(slot, slot.value === slot.defaultValue ? "" : slot.defaultValue);
  });
  document.addEventListener("input", (event) => event.target.closest("#slots") && mark());
  document.addEventListener("htmx:after:swap", mark);
}

function fill(leaf) {
  const slot = slots().find((one) => !one.value);
  if (slots().some((one) => one.value === leaf.dataset.map)) return;
  if (slot) put(slot, leaf.dataset.map);
  else say("All four fields are taken: empty one first");
}

function put(slot, path) {
  slot.value = path;
  slot.dispatchEvent(new Event("input", { bubbles: true }));
  touched(slot.form);
}

// Which field carries which value, as the page says it of what is saved.
function mark() {
  if (!slots().length) return;
  for (const one of document.querySelectorAll("#settings .tree .mapped")) one.remove();
  for (const slot of slots().filter((one) => one.value)) {
    const leaf = document.querySelector(`#settings .tree [data-map="${CSS.escape(slot.value)}"]`);
    leaf?.insertAdjacentElement("afterend", Object.assign(document.createElement("span"), { className: "mapped", textContent: slot.labels[0].textContent }));
  }
}

function offer(leaf) {
  const menu = document.getElementById("map");
  if (!menu) return;
  menu.querySelector("[data-map-path]").textContent = leaf.dataset.map;
  menu.querySelector("[data-map-copy]").dataset.copy = leaf.dataset.map;
  menu.elements.path.value = leaf.dataset.map;
  menu.elements.invocation.value = leaf.closest("[data-invocation]").dataset.invocation;
  for (const button of menu.querySelectorAll("button")) button.disabled = false;
}

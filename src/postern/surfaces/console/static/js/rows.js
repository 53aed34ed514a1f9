// The rows of a webhook's conditions: a chosen value fills the empty row, and another empty one follows.

import { inSight, touched } from "./guard.js";

const MOST = 20;
const rows = () => [...document.querySelectorAll("#rows .condition")];
const part = (row, name) => row.querySelector(`[name$=".${name}"]`);

export function start() {
  // A row that was begun at a recorded call is not saved yet, and a proposal is not.
  if (new URLSearchParams(location.search).has("of") || document.querySelector("[data-not-saved]")) touched(document.querySelector("#rows").closest("form"));
  document.addEventListener("click", (event) => {
    const chosen = event.target.closest("#row-choices [data-row]");
    if (chosen) fill(chosen.dataset);
  });
  document.addEventListener("input", (event) => event.target.closest("#rows") && follow());
}

function fill({ row: of, is, value }) {
  const row = rows().find((one) => !part(one, "of").value);
  if (!row) return;
  inSight(row);
  part(row, "of").value = of;
  part(row, "is").value = is;
  part(row, "values").value = value;
  follow();
  touched(part(row, "of").form);
  part(row, "of").dispatchEvent(new Event("change", { bubbles: true }));
}

function follow() {
  const last = rows().at(-1);
  if (!part(last, "of").value || rows().length >= MOST) return;
  const next = last.cloneNode(true);
  const renumbered = (text) => text.replace(/\.\d+\./g, `.${rows().length}.`);
  for (const wrong of next.querySelectorAll(".wrong")) wrong.remove();
  for (const one of next.querySelectorAll("[id]")) one.id = renumbered(one.id);
  for (const one of next.querySelectorAll("[aria-describedby]")) one.setAttribute("aria-describedby", renumbered(one.getAttribute("aria-describedby")));
  for (const field of next.querySelectorAll("[name]")) {
    field.name = renumbered(field.name);
    field.removeAttribute("aria-invalid");
    if (field.type === "checkbox") field.checked = false;
    else if (field.tagName === "SELECT") field.selectedIndex = 0;
    else field.value = "";
  }
  for (const label of next.querySelectorAll("label[for]")) label.htmlFor = renumbered(label.htmlFor);
  last.after(next);
}

// A field that chooses one webhook among thousands: typing searches, arrows walk, Enter takes. Without a script it is a
// plain field, and the server finds out which webhook was meant.

import { say } from "./copy.js";

const WAIT = 120;
let count = 0;

export function start(selector) {
  for (const box of document.querySelectorAll(selector)) enhance(box);
}

function enhance(box) {
  const field = box.querySelector("input");
  const chosen = Object.assign(document.createElement("input"), { type: "hidden", name: field.name, value: box.dataset.id });
  if (field.getAttribute("form")) chosen.setAttribute("form", field.getAttribute("form"));
  const list = Object.assign(document.createElement("ul"), { id: `choices-${++count}`, hidden: true, className: "choices-found" });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Choices");
  box.querySelector("datalist").remove();
  box.append(chosen, list);
  field.removeAttribute("name");
  field.removeAttribute("list");
  const marks = { role: "combobox", "aria-expanded": "false", "aria-controls": list.id, "aria-autocomplete": "list" };
  for (const [name, value] of Object.entries(marks)) field.setAttribute(name, value);

  let shown = field.defaultValue;
  let timer = 0;
  let asked = null;

  const close = () => {
    clearTimeout(timer);
    asked?.abort();
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };
  const walk = (to) => {
    const options = [...list.querySelectorAll("[role=option]")];
    const option = options[(to + options.length) % options.length];
    for (const one of options) one.setAttribute("aria-selected", String(one === option));
    if (!option) return;
    field.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  };
  const at = () => [...list.children].findIndex((one) => one.getAttribute("aria-selected") === "true");
  const put = (id, name) => {
    const isNew = chosen.value !== id;
    chosen.value = id;
    field.value = shown = name;
    close();
    if (!isNew) return;
    chosen.dispatchEvent(new Event("input", { bubbles: true }));
    chosen.dispatchEvent(new Event("change", { bubbles: true }));
    if ("submits" in box.dataset) chosen.form?.requestSubmit();
  };
  const take = (option) => put(option.dataset.id, option.dataset.name);
  const show = async (text) => {
    asked?.abort();
    asked = new AbortController();
    try {
      const answer = await fetch(box.dataset.picker + encodeURIComponent(text), { signal: asked.signal, headers: { "hx-request": "true" } });
      if (!answer.ok || answer.headers.has("hx-redirect")) return;
      list.innerHTML = await answer.text();
    } catch {
      return; // something else was typed meanwhile, or the gateway is away: what is typed goes to the server as it is
    }
    if (document.activeElement !== field) return;
    if (box.dataset.every && !text) {
      const every = Object.assign(document.createElement("li"), { textContent: box.dataset.every });
      every.setAttribute("role", "option");
      Object.assign(every.dataset, { id: "", name: "" });
      list.prepend(every);
    }
    const options = list.querySelectorAll("[role=option]");
    options.forEach((option, number) => {
      option.id = `${list.id}-${number}`;
      option.setAttribute("aria-selected", "false");
    });
    list.hidden = !options.length;
    field.setAttribute("aria-expanded", String(!list.hidden));
    say(options.length ? `${options.length} to choose from` : "No webhook is called so");
  };
  const open = () => show(field.value === shown ? "" : field.value.trim());

  field.addEventListener("input", (event) => {
    event.stopPropagation(); // half a name is no choice: the form hears of it when one is made
    clearTimeout(timer);
    timer = setTimeout(() => show(field.value.trim()), WAIT);
  });
  field.addEventListener("change", (event) => event.stopPropagation());
  field.addEventListener("click", () => list.hidden && open());
  field.addEventListener("focus", () => field.select());
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) open();
      else walk(event.key === "ArrowDown" ? at() + 1 : at() < 0 ? -1 : at() - 1);
    } else if (event.key === "Escape") {
      if (!list.hidden) {
        event.preventDefault();
        event.stopPropagation();
        field.value = shown;
      }
      close(); // also one that has been asked for and is not there yet
    } else if (event.key === "Enter" && !list.hidden && at() >= 0) {
      event.preventDefault();
      take(list.children[at()]);
    } else if (event.key === "Enter") settle();
  });
  // What was typed and not chosen from the list: nothing takes the choice back, anything else the server finds or refuses.
  const settle = () => {
    const text = field.value.trim();
    if (text !== shown) put(text, text);
    else close();
  };
  field.addEventListener("blur", settle);
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) take(option);
  });
  if (document.activeElement === field) open(); // clicked, or typed into, before this was there
}

// Switchers: buttons of which each shows its own part; selects and radios that show what belongs to their value.

export function start() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-show]");
    if (!button) return;
    const box = button.closest("[data-shows]");
    for (const one of box.querySelectorAll("[data-show]")) one.setAttribute("aria-pressed", String(one === button));
    for (const one of box.querySelectorAll("[data-shown]")) one.hidden = one.dataset.shown !== button.dataset.show;
  });

  for (const control of document.querySelectorAll("[data-decides]")) {
    control.addEventListener("change", () => decide(control));
    if (control.type !== "radio" || control.checked) decide(control);
  }
}

// Parts with data-when="name:value other" are shown for those values, with "name:!value" for all others, and nothing of a
// hidden part is sent.
function decide(control) {
  for (const part of document.querySelectorAll(`[data-when^="${control.name}:"]`)) {
    const values = part.dataset.when.slice(control.name.length + 1).split(" ");
    part.hidden = values[0][0] === "!" ? values[0].slice(1) === control.value : !values.includes(control.value);
    if (part.tagName === "FIELDSET") part.disabled = part.hidden;
  }
}

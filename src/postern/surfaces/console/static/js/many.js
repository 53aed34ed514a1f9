// Marking rows: all of the page at once, and how many are chosen.

export function start() {
  const all = () => [...document.querySelectorAll("input[name=chosen][form=many]")];
  const count = () => {
    const bar = document.querySelector("[data-mark-all]");
    if (!bar) return;
    bar.hidden = false;
    const [marks, whole] = [all(), bar.querySelector("input")];
    const chosen = marks.filter((mark) => mark.checked).length;
    const everything = document.querySelector("#many [name=all]")?.checked;
    for (const mark of marks) mark.disabled = Boolean(everything);
    whole.disabled = Boolean(everything);
    whole.checked = chosen > 0 && chosen === marks.length;
    whole.indeterminate = chosen > 0 && chosen < marks.length;
    bar.querySelector("[data-marked]").textContent = everything ? "All that match" : chosen ? `${chosen} chosen` : "None chosen";
  };
  document.addEventListener("change", (event) => {
    if (event.target.closest("[data-mark-all]")) for (const mark of all()) mark.checked = event.target.checked;
    if (event.target.form?.id === "many") count();
  });
  document.addEventListener("htmx:after:swap", count);
  window.addEventListener("pageshow", count); // a browser that goes back keeps the marks
  count();
}

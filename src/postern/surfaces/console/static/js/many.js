// Marking rows: all of the page at once, and how many are chosen.

export function start() {
  const all = () => [...document.querySelectorAll("input[name=chosen][form=many]")];
  const count = () => {
    const marks = all();
    const chosen = marks.filter((mark) => mark.checked).length;
    const everything = document.querySelector("[name=all][form=many]")?.checked;
    for (const mark of marks) mark.disabled = Boolean(everything);
    for (const bar of document.querySelectorAll("[data-mark-all]")) {
      const whole = bar.querySelector("input");
      bar.hidden = false;
      whole.disabled = Boolean(everything);
      whole.checked = chosen > 0 && chosen === marks.length;
      whole.indeterminate = chosen > 0 && chosen < marks.length;
    }
    const said = document.querySelector("[data-marked]");
    if (said) said.textContent = everything ? "" : `${chosen} chosen`;
  };
  document.addEventListener("change", (event) => {
    const whole = event.target.closest("[data-mark-all]");
    if (whole) for (const mark of all()) mark.checked = event.target.checked;
    if (whole || event.target.form?.id === "many") count();
  });
  document.addEventListener("htmx:after:swap", count);
  window.addEventListener("pageshow", count); // a browser that goes back keeps the marks
  count();
}

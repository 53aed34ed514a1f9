// Keys: Ctrl K (⌘K) finds anything, / goes to the page's search, arrows walk through what was found.

export function keys() {
  const dialog = document.getElementById("find");
  const input = dialog?.querySelector("input");
  const open = () => {
    if (!dialog || dialog.open) return;
    dialog.showModal();
    input.value = "";
    input.focus();
    input.dispatchEvent(new Event("open"));
  };
  document.addEventListener("click", (event) => event.target.closest("[data-find]") && open());
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
    } else if (event.key === "/" && !event.target.closest("input, textarea, select, [contenteditable]") && !document.querySelector("dialog:modal")) {
      const search = document.querySelector("main [type=search]");
      if (!search) return;
      event.preventDefault();
      search.focus();
      search.select();
    }
  });
  if (/mac/i.test(navigator.platform)) for (const key of document.querySelectorAll("[data-find] kbd")) key.textContent = "⌘K";

  dialog?.addEventListener("keydown", (event) => {
    const links = [...dialog.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    // A result that was found for other words is not opened: the form asks for these on a page of its own.
    if (event.key === "Enter" && at < 0 && dialog.querySelector("#found")?.dataset.wanted === input.value.trim()) {
      event.preventDefault();
      links[0]?.click();
    }
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    if (to === undefined || !links.length) return;
    event.preventDefault();
    if (to < 0) input.focus();
    else links[Math.min(to, links.length - 1)].focus();
  });
  dialog?.addEventListener("click", (event) => event.target === dialog && dialog.close());
}

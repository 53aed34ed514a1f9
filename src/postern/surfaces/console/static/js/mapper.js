// A value in a tree was clicked: the menu that opens takes its path along, to be copied or mapped.

export function start(selector) {
  const menu = document.querySelector(selector);
  const take = (leaf) => {
    menu.querySelector("[data-map-path]").textContent = leaf.dataset.map;
    menu.querySelector("[data-map-copy]").dataset.copy = leaf.dataset.map;
    menu.elements.path.value = leaf.dataset.map;
    menu.elements.invocation.value = leaf.closest("[data-invocation]").dataset.invocation;
    for (const button of menu.querySelectorAll("button")) button.disabled = false;
  };
  document.addEventListener("click", (event) => {
    const leaf = event.target.closest("[data-map]");
    if (leaf) take(leaf);
  });
}

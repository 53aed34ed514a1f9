// A value in a tree was clicked: the menu that opens takes its path along, to be copied or mapped.

export function start() {
  document.addEventListener("click", (event) => {
    const leaf = event.target.closest("[data-map]");
    const menu = document.getElementById("map");
    if (!leaf || !menu) return;
    menu.querySelector("[data-map-path]").textContent = leaf.dataset.map;
    menu.querySelector("[data-map-copy]").dataset.copy = leaf.dataset.map;
    menu.elements.path.value = leaf.dataset.map;
    menu.elements.invocation.value = leaf.closest("[data-invocation]").dataset.invocation;
  });
}

// A search field that narrows a list already on the page.

export function start(selector) {
  for (const field of document.querySelectorAll(selector)) {
    const list = document.querySelector(field.dataset.filter);
    const none = document.querySelector("[data-filter-none]");
    const narrow = () => {
      const wanted = field.value.trim().toLowerCase();
      let left = 0;
      for (const item of list.children) {
        item.hidden = wanted ? !item.dataset.words.includes(wanted) : "more" in item.dataset;
        if (!item.hidden) left += 1;
      }
      if (none) none.hidden = left > 0;
      if ("typed" in field.dataset) list.hidden = !wanted;
    };
    field.addEventListener("input", narrow);
    narrow(); // whoever typed before this was loaded
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      [...list.children].find((item) => !item.hidden)?.querySelector("a")?.click();
    });
  }
}

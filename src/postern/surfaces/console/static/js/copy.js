// Buttons with data-copy put their text on the clipboard and say so.

export function say(text) {
  const line = document.getElementById("said");
  line.textContent = "";
  requestAnimationFrame(() => (line.textContent = text));
}

export function copying() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const ok = await put(button.dataset.copy);
    say(ok ? "Copied" : "Copying is not allowed here: select the text instead");
    if (!ok) return;
    const use = button.querySelector("use");
    const before = use.getAttribute("href");
    if (before.endsWith("#check")) return;
    use.setAttribute("href", before.replace(/#.*/, "#check"));
    setTimeout(() => use.setAttribute("href", before), 1600);
  });
}

async function put(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Plain http on another machine has no clipboard API; the old way still works there.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "out-of-sight";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// An element with data-copy puts that text on the clipboard and says so; a link with data-copy-from puts there what it leads to.

// The icon of this name, as icons.svg has it.
const CHECK = '<path d="m4 10.500 4 4 8-9"/>';

export function say(text) {
  const line = document.getElementById("announced");
  line.textContent = "";
  requestAnimationFrame(() => (line.textContent = text));
}

export function copying() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from]");
    if (!button || event.ctrlKey || event.metaKey) return;
    let text = button.dataset.copy;
    if (text === undefined) {
      event.preventDefault();
      text = await fetched(button.href);
      if (text === null) return say("It could not be read: reload the page");
    }
    const ok = await put(text);
    say(ok ? "Copied" : "Copying is not allowed here: select the text instead");
    if (!ok) return;
    button.closest(".menu")?.hidePopover();
    if ("copied" in button.dataset) return;
    const picture = button.querySelector("svg");
    const before = picture.innerHTML;
    button.dataset.copied = "";
    picture.innerHTML = CHECK;
    setTimeout(() => {
      picture.innerHTML = before;
      delete button.dataset.copied;
    }, 1600);
  });
}

async function fetched(address) {
  try {
    const answer = await fetch(address);
    // Who is signed out is led to another page, and that is no text to copy.
    return answer.ok && !answer.redirected ? await answer.text() : null;
  } catch {
    return null;
  }
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

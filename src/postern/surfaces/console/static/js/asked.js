// The field of the page Calls: tokens are offered while somebody types, and a token that is whole is searched for at once.

const given = { header: "x-topic=orders/paid", field: "customer.id=7", before: "2026-11-21", from: "203.0.113.7" };

export function start() {
  document.addEventListener("input", async (event) => {
    const field = event.target;
    if (field.id !== "q") return;
    const tokens = JSON.parse(field.form.dataset.tokens);
    const before = field.value.slice(0, field.value.lastIndexOf(" ") + 1);
    const word = field.value.slice(before.length);
    const [name, typed] = word.toLowerCase().split(/:(.*)/s);
    // A value chosen from the list arrives in one piece.
    if (event.inputType === "insertReplacementText" || event.inputType === undefined) {
      if (typed) field.form.requestSubmit();
    }
    offer(field, typed === undefined ? Object.keys(tokens).filter((one) => one.startsWith(name)).map((one) => `${before}${one}:`) : (await values(name, typed, tokens)).map((one) => `${before}${name}:${one}`));
  });
}

async function values(name, typed, tokens) {
  if (name !== "webhook") return (tokens[name] ?? []).filter((one) => one.includes(typed)).concat(given[name] && !typed ? [given[name]] : []);
  const answer = await fetch(`/webhooks/choices?search=${encodeURIComponent(typed)}`).catch(() => null);
  if (!answer?.ok) return [];
  const list = document.createElement("template");
  list.innerHTML = await answer.text();
  return [...list.content.querySelectorAll("option")].map((one) => `"${one.value}"`);
}

function offer(field, texts) {
  field.list.replaceChildren(...texts.slice(0, 12).map((text) => Object.assign(document.createElement("option"), { value: text })));
}

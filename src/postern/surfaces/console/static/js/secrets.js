// Judges a secret while it is typed or pasted. It stays in the page: nothing of it is sent before it is saved.
//
// The patterns stand in data-secret-form: of the field itself, or of the chosen option of the select that data-judged-by names.
// They are the ones that the gateway uses, too.

export function start(selector) {
  for (const field of document.querySelectorAll(selector)) if (field.matches("input") && field.value) judge(field); // pasted before this was there
  document.addEventListener("input", (event) => {
    const field = event.target.closest("[data-secret-form], [data-judged-by]");
    if (field) judge(field);
  });
  document.addEventListener("click", (event) => {
    const eye = event.target.closest("[data-eye]");
    if (!eye) return;
    const field = document.getElementById(eye.dataset.eye);
    field.type = field.type === "password" ? "text" : "password";
    eye.setAttribute("aria-pressed", String(field.type === "text"));
  });
  document.addEventListener("change", (event) => {
    const field = event.target.closest("[data-secret-form], [data-judged-by]");
    if (field) trim(field);
    for (const one of document.querySelectorAll(`[data-judged-by="${event.target.id}"]`)) judge(one);
  });
}

function judge(field) {
  const form = formOf(field);
  const secret = field.value.trim();
  const other = form?.others.find(({ pattern }) => matches(pattern, secret));
  const fits = !other && form?.pattern && matches(form.pattern, secret);
  const known = other || form?.pattern;
  say(field, secret && known ? (other ? other.sentence : fits ? form.like : form.unlike) : "", fits);
}

// Blanks come along when a secret is copied, and would be signed with.
function trim(field) {
  if (field.value === field.value.trim()) return;
  field.value = field.value.trim();
  judge(field);
  const line = lineOf(field);
  line.textContent = `The blanks around it were left out. ${line.textContent}`;
  line.hidden = false;
}

function formOf(field) {
  const select = field.dataset.judgedBy && document.getElementById(field.dataset.judgedBy);
  const form = select ? select.selectedOptions[0]?.dataset.secretForm : field.dataset.secretForm;
  return form ? JSON.parse(form) : null;
}

function matches(pattern, secret) {
  return new RegExp(`^(?:${pattern})$`).test(secret);
}

function say(field, sentence, fits) {
  const line = lineOf(field);
  line.textContent = sentence;
  line.hidden = !sentence;
  line.classList.toggle("judged-well", Boolean(fits));
}

// Where the sentence stands; it is read out when it changes.
function lineOf(field) {
  const id = `judged-${field.id}`;
  const there = document.getElementById(id);
  if (there) return there;
  const line = Object.assign(document.createElement("p"), { id, className: "help judged", hidden: true });
  line.setAttribute("role", "status");
  field.setAttribute("aria-describedby", `${field.getAttribute("aria-describedby") ?? ""} ${id}`.trim());
  field.after(line);
  return line;
}

// The custom scheme's three shapes: each fills in the fields that make it up.

const SHAPES = {
  header: { itemSeparator: "", keySeparator: "", signatureForm: "", signatureKey: "", signedContent: "{body}", timestamp: "" },
  prefixed: { itemSeparator: "", keySeparator: "equals", signatureForm: "", signatureKey: "sha256", signedContent: "{body}", timestamp: "" },
  listed: { itemSeparator: "comma", keySeparator: "equals", signatureForm: "", signatureKey: "v1", signedContent: "{timestamp}.{body}", timestamp: "item:t", toleranceSeconds: "300" },
};

export function start() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-fill]");
    if (!button) return;
    for (const [name, value] of Object.entries(SHAPES[button.dataset.fill])) {
      const field = document.getElementById(`scheme.${name}`);
      if (field) field.value = value;
    }
    document.getElementById("scheme.signature").focus();
  });
  document.addEventListener("change", (event) => {
    const choice = event.target.closest("[data-goes]");
    if (choice?.value) location.assign(choice.dataset.goes + encodeURIComponent(choice.value));
  });
}

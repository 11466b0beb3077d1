"use strict";
(() => {
  const form = document.querySelector("form");
  const rows = [...document.querySelectorAll("tr[data-kind]")];
  const found = form.querySelector("output");
  const below = rows.map((row) => row.nextElementSibling?.matches(".trouble") ? row.nextElementSibling : null);
  const texts = rows.map((row, at) => (row.textContent + (below[at]?.textContent ?? "")).toLowerCase());
  const chosen = (row, name) => {
    const wanted = form.elements[name].value;
    return wanted === "" || row.dataset[name] === wanted;
  };
  const search = () => {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const narrowed = words.length > 0 || ["owner", "kind", "key"].some((name) => form.elements[name].value);
    let hits = 0;
    rows.forEach((row, at) => {
      const hit = words.every((word) => texts[at].includes(word))
        && chosen(row, "owner") && chosen(row, "kind") && chosen(row, "key");
      row.hidden = !hit;
      if (below[at]) below[at].hidden = !hit;
      hits += hit;
    });
    for (const part of document.querySelectorAll(".rows")) {
      const none = part.querySelector("tbody tr:not([hidden])") === null;
      part.hidden = none;
      if (part.matches("details")) part.open = narrowed && !none;
    }
    found.textContent = narrowed ? `${hits} of ${rows.length} rows` : "";
  };
  let soon;
  form.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(search, 60); });
  form.addEventListener("reset", () => setTimeout(search));
  form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.matches("input, select")) {
      event.preventDefault();
      form.elements.words.focus();
    } else if (event.key === "Escape" && form.contains(event.target)) {
      form.reset();
    }
  });
  form.hidden = rows.length === 0;
})();

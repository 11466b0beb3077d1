"use strict";
(() => {
  const table = document.querySelector(".clusters");
  const form = document.querySelector("form");
  if (table === null) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const columns = [...table.tHead.rows[0].cells];
  const compare = (one, other) => {
    const [a, b] = [Number(one), Number(other)];
    return one !== "" && other !== "" && !Number.isNaN(a) && !Number.isNaN(b) ? a - b : one.localeCompare(other);
  };
  columns.forEach((column, at) => {
    if (rows[0].cells[at].dataset.value === undefined) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = column.textContent;
    column.replaceChildren(button);
    button.addEventListener("click", () => {
      const ascending = column.getAttribute("aria-sort") !== "ascending";
      for (const other of columns) other.removeAttribute("aria-sort");
      column.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const order = rows.toSorted((one, other) => compare(one.cells[at].dataset.value, other.cells[at].dataset.value));
      body.append(...(ascending ? order : order.reverse()));
    });
  });
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const found = form.querySelector("output");
  const search = () => {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let hits = 0;
    rows.forEach((row, at) => {
      row.hidden = !words.every((word) => texts[at].includes(word));
      hits += !row.hidden;
    });
    found.textContent = words.length > 0 ? `${hits} of ${rows.length} clusters` : "";
  };
  form.addEventListener("input", search);
  form.addEventListener("reset", () => setTimeout(search));
  form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !form.hidden && !event.target.matches("input")) {
      event.preventDefault();
      form.elements.words.focus();
    } else if (event.key === "Escape" && form.contains(event.target)) {
      form.reset();
    }
  });
  form.hidden = form.dataset.searched === undefined;
})();

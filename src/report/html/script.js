"use strict";
// Filters the table of cases, and opens what is folded before it is printed. The page says the same
// without it.
(() => {
  const form = document.getElementById("filter");
  if (form) {
    const search = document.getElementById("search");
    const verdict = document.getElementById("verdict");
    const shown = document.getElementById("shown");
    const rows = Array.from(document.querySelectorAll("#all-cases tr[data-verdict]"), (row) => ({
      row,
      verdict: row.dataset.verdict,
      text: row.textContent.toLowerCase(),
    }));
    const apply = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const { row, verdict: own, text } of rows) {
        const fits =
          (verdict.value === "" || verdict.value === own) &&
          words.every((word) => text.includes(word));
        row.hidden = !fits;
        count += fits ? 1 : 0;
      }
      const all = search.value === "" && verdict.value === "";
      for (const folded of document.querySelectorAll("#all-cases > details")) folded.open = !all;
      shown.textContent = `${count} of ${rows.length} shown`;
    };
    form.addEventListener("submit", (event) => event.preventDefault());
    search.addEventListener("input", apply);
    verdict.addEventListener("change", apply);
    form.hidden = false;
    apply();
  }
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    for (const details of opened) details.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
})();

"use strict";
(() => {
  const rows = [...document.querySelectorAll(".row")];
  const lanes = [...document.querySelectorAll(".lanes line")];
  const title = document.querySelector("aside h2");
  const text = document.querySelector("aside pre");
  let pinned = null;
  const light = (row) => {
    const link = row?.dataset.link;
    const lane = row?.dataset.lane;
    for (const other of rows) {
      const same = other === row || (link !== undefined && other.dataset.link === link);
      other.classList.toggle("lit", row !== null && same);
    }
    for (const line of lanes) {
      line.classList.toggle("lit", lane !== undefined && line.dataset.lane === lane);
    }
  };
  const show = (row) => {
    title.textContent = row.querySelector("b").title;
    text.textContent = row.querySelector("pre").textContent;
  };
  const pin = (row) => {
    pinned?.classList.remove("pinned");
    pinned = pinned === row ? null : row;
    pinned?.classList.add("pinned");
    light(row);
    show(row);
  };
  for (const row of rows) {
    row.addEventListener("mouseenter", () => {
      light(row);
      if (pinned === null) show(row);
    });
    row.addEventListener("mouseleave", () => light(pinned));
    row.addEventListener("click", () => pin(row));
    row.addEventListener("keydown", (event) => {
      const next = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling };
      if (event.key === "Enter" || event.key === " ") pin(row);
      else if (next[event.key]) next[event.key].focus();
      else return;
      event.preventDefault();
    });
    row.addEventListener("focus", () => {
      light(row);
      if (pinned === null) show(row);
    });
  }
})();

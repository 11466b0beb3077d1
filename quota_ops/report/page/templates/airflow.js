"use strict";
(() => {
  // Airflow's web interface shows these pages in a frame that may not open other pages, from the
  // same origin. Its setting for dark mode is in the storage of that origin.
  const follow = (theme) => {
    document.documentElement.style.colorScheme = ["light", "dark"].includes(theme) ? theme : "";
  };
  const isFramed = window.parent !== window;
  try {
    if (isFramed) follow(localStorage.getItem("theme"));
  } catch {
    return; // a page of a file, or of another origin
  }
  if (!isFramed) return;
  addEventListener("storage", (event) => event.key === "theme" && follow(event.newValue));
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-airflow]");
    if (link === null) return;
    event.preventDefault();
    parent.history.pushState({}, "", link.href);
    parent.dispatchEvent(new PopStateEvent("popstate", { state: {} }));
  });
})();

// Before the page is drawn: the theme that was chosen, if one was.
try {
  const chosen = localStorage.getItem("limpet-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Without storage the system's own theme is used.
}

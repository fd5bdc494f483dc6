// The theme that was chosen, before anything is seen: pages load this ahead of their style.
try {
  const theme = localStorage.getItem("stint-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* the browser keeps nothing */ }

// A file can be dropped on the import page, and a bar shows how much of it has arrived.
export function bindUpload() {
  const form = document.querySelector("[data-import]");
  if (!form) return;
  const drop = form.querySelector("[data-drop]");
  const input = drop.querySelector("input");
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) input.files = event.dataTransfer.files;
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const bar = form.querySelector("progress");
    const request = new XMLHttpRequest();
    bar.hidden = false;
    request.upload.addEventListener("progress", ({ loaded, total }) => (bar.value = loaded / total));
    request.addEventListener("load", () => show(request.responseText));
    request.addEventListener("error", () => form.submit());
    request.open("POST", form.action);
    request.send(new FormData(form));
  });
}

function show(html) {
  const answer = new DOMParser().parseFromString(html, "text/html");
  document.querySelector("main").replaceWith(answer.querySelector("main"));
  document.title = answer.title;
  document.querySelector("main").focus();
  bindUpload();
}

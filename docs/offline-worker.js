/* Search in pages that are opened as files: browsers allow no worker there, so its script runs in a hidden frame. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      const content = this.inner.document;
      content.open(); // which removes listeners, so they are added after it
      this.loaded = new Promise((resolve) => { this.inner.addEventListener("load", resolve); });
      content.write(
        "<script>postMessage = (data) => parent.postMessage(data, '*');" +
        "importScripts = (...urls) => Promise.all(urls.map((url) => new Promise((resolve, reject) => {" +
        "const tag = document.createElement('script'); tag.src = url; tag.onload = resolve; tag.onerror = reject;" +
        "document.body.append(tag); })));</" + "script><body><script src='" + url + "'></" + "script></body>"
      );
      content.close();
      window.addEventListener("message", (event) => {
        if (event.source !== this.inner) return;
        const copy = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(copy);
        if (this.onmessage) this.onmessage(copy);
      });
    }
    postMessage(data) {
      this.loaded.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
  };
}

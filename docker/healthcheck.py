"""Check that the service in this container is alive by `/healthz`; exit 0 if it is."""

from __future__ import annotations

import os
import ssl
import sys
import urllib.request
from typing import Final

PATIENCE: Final = 4.0


def main() -> str | None:
    """Ask, over TLS where the service has a certificate, which is not checked here."""
    env = os.environ
    port = env.get("OTEL_RELIABILITY_SERVICE_UI", "127.0.0.1:8080").rpartition(":")[2]
    scheme = "https" if "OTEL_RELIABILITY_SERVICE_TLS_CERTIFICATE" in env else "http"
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusting))
    try:
        with urllib.request.build_opener(*handlers).open(
            f"{scheme}://127.0.0.1:{port}/healthz", timeout=PATIENCE
        ):
            return None
    except OSError as error:
        return f"The service does not answer: {error}"


if __name__ == "__main__":
    sys.exit(main())

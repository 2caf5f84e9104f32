"""The door: who is it, may they come in. What the HTTP front and the tests of recorded transcripts both go through."""

from skysail.api.ports import Handler, Request, Response
from skysail.apiserver.authentication import TokenAuthenticator
from skysail.apiserver.status import failure_response, unauthorized


async def answer(handler: Handler, authenticator: TokenAuthenticator, request: Request) -> Response:
    """Authenticate a request and have it handled; without a known token it is 401."""
    user = authenticator.authenticate(request.headers)
    if user is None:
        return failure_response(unauthorized())
    return await handler.handle(request, user)

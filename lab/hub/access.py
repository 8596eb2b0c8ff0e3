"""Users of the lab's hub, and refused requests, with the codes that clients turn into errors.

The tokens are documented fakes: they give access only to this lab's repositories.
"""

from .store import Repository

# Member of `lab`: may read the private repository, and has accepted the gated repository's licence.
MEMBER_TOKEN = "hf_lab_fake_token"
# A valid account that may read neither repository.
STRANGER_TOKEN = "hf_lab_fake_stranger"
USERS = {MEMBER_TOKEN: "lab-member", STRANGER_TOKEN: "lab-stranger"}
MEMBER = USERS[MEMBER_TOKEN]


class Refusal(Exception):
    """An answer other than success: `code` for X-Error-Code and `message` for X-Error-Message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def user(authorization: str | None) -> str | None:
    """Return the name of the user, None without a token; refuse an invalid token."""
    if authorization is None:
        return None
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or token.strip() not in USERS:
        # Without a code, clients distinguish a bad token from a missing repository by this message.
        raise Refusal(401, "", "Invalid credentials in Authorization header")
    return USERS[token.strip()]


def check_visible(repository: Repository | None, name: str | None) -> Repository:
    """Return the repository, or refuse the request: a private repository looks missing."""
    if repository is not None and (not repository.private or name == MEMBER):
        return repository
    if name is None:
        raise Refusal(401, "RepoNotFound", "Invalid username or password.")
    raise Refusal(404, "RepoNotFound", "Repository not found")


def check_content(repository: Repository, name: str | None) -> None:
    """Refuse the files of a gated repository to a user without access. Listings are open."""
    if not repository.gated or name == MEMBER:
        return
    if name is None:
        raise Refusal(
            401,
            "GatedRepo",
            f"Access to model {repository.id} is restricted. You must have access to it and be "
            "authenticated to access it. Please log in.",
        )
    raise Refusal(
        403,
        "GatedRepo",
        f"Access to model {repository.id} is restricted and you are not in the authorized list. "
        f"Visit https://huggingface.co/{repository.id} to ask for access.",
    )

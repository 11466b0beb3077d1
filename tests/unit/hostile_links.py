"""Links that a commit can contain, each created in the current checkout."""

from pathlib import Path

CLUSTER_YAML = "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n"
QUOTAS = "owner: payments\nquotas: [{user: alice, limits: {request_percentage: 50}}]\n"
LINK = "This is a link, and quota-ops follows no links."
IN_PLACE = f"{LINK} Replace it with its target."
ABOVE = f"{LINK} Replace it with the folder. If no commit can change the link, pass the path"


def write_cluster(folder: Path) -> Path:
    """Write a cluster folder with one file of one quota."""
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER_YAML)
    (folder / "team.yaml").write_text(QUOTAS)
    return folder


def cluster_yaml(machine: Path) -> str:
    """Make cluster.yaml a link to a file of one line."""
    Path("desired_state/demo/cluster.yaml").unlink()
    Path("desired_state/demo/cluster.yaml").symlink_to(machine / "secrets" / "password.yaml")
    return f"desired_state/demo/cluster.yaml:1:1  {IN_PLACE}"


def quotas_file(machine: Path) -> str:
    """Make a quotas file a link."""
    Path("desired_state/demo/a.yaml").symlink_to(machine / "secrets" / "password.yaml")
    return f"desired_state/demo/a.yaml:1:1  {IN_PLACE}"


def device(_: Path) -> str:
    """Make a quotas file a link to a device that never ends."""
    Path("desired_state/demo/a.yaml").symlink_to("/dev/zero")
    return f"desired_state/demo/a.yaml:1:1  {IN_PLACE}"


def team_folder(machine: Path) -> str:
    """Make a folder of a cluster a link."""
    Path("desired_state/demo/team").symlink_to(machine / "secrets")
    return f"desired_state/demo/team:1:1  {IN_PLACE}"


def git_file(machine: Path) -> str:
    """Make one of Git's own files a link."""
    Path("desired_state/demo/.gitignore").symlink_to(machine / "secrets" / "password.yaml")
    return f"desired_state/demo/.gitignore:1:1  {IN_PLACE}"


def cluster_folder(machine: Path) -> str:
    """Make a cluster's folder a link."""
    Path("desired_state/demo").rename("elsewhere")
    Path("desired_state/demo").symlink_to(machine / "secrets")
    return f"desired_state/demo:1:1  {ABOVE}"


def desired_state(machine: Path) -> str:
    """Make the desired state a link."""
    Path("desired_state").rename("elsewhere")
    (machine / "secrets" / "demo").mkdir()
    (machine / "secrets" / "cluster.yaml").rename(machine / "secrets/demo/cluster.yaml")
    Path("desired_state").symlink_to(machine / "secrets")
    return f"desired_state:1:1  {ABOVE}"


def desired_state_inside(machine: Path) -> str:
    """Make the desired state a link to another folder of the checkout."""
    del machine
    Path("desired_state").rename("elsewhere")
    Path("desired_state").symlink_to("elsewhere")
    return f"desired_state:1:1  {ABOVE}"


def another_checkout(machine: Path) -> str:
    """Make the desired state a link to the top of another checkout."""
    desired_state(machine)
    (machine / "secrets" / ".git").mkdir()
    return f"desired_state:1:1  {ABOVE}"


LINKS = (
    cluster_yaml,
    quotas_file,
    device,
    team_folder,
    git_file,
    cluster_folder,
    desired_state,
    desired_state_inside,
    another_checkout,
)

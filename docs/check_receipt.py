"""Check a receipt of `audit receipt KEY` with nothing but Python: `python check_receipt.py FILE [NO:HASH]`.

For whoever has to trust the proof and not the program that wrote it. `NO:HASH` is a seal that was noted independently,
as `audit verify` prints it.
"""

import hashlib
import json
import sys

NOT_HASHED = {"id", "at", "at_exact", "own_hash", "seal_no", "previous", "sealed_hash"}


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def main(file: str, noted: str = "") -> None:
    with open(file, encoding="utf-8") as opened:
        receipt = json.load(opened)
    number, link = receipt["start"]["no"], receipt["start"]["previous"]
    seals, own_hashes = {}, {}
    for own in receipt["links"]:
        link = sha256(f"{number}:{link}:{own}")
        seals[number], own_hashes[number] = link, own
        number += 1
    for entry in receipt["entries"]:
        content = {name: value for name, value in entry.items() if name not in NOT_HASHED}
        if not content["details"]:
            del content["details"]
        content["at"] = entry["at_exact"]
        own = sha256(json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
        if own != own_hashes.get(entry["seal_no"]) or entry["key"] != receipt["key"]:
            sys.exit(f"entry {entry['seal_no']} is not the one that was sealed")
    if receipt["head"] != {"no": number - 1, "hash": link}:
        sys.exit("the links do not lead to the head")
    if noted and seals.get(int(noted.partition(":")[0])) != noted.partition(":")[2]:
        sys.exit(f"the chain does not pass through {noted}")
    for entry in receipt["entries"]:
        words = (entry["at"], entry["act"], entry["outcome"], "by", entry["actor"], "in", entry["surface"])
        sys.stdout.write(" ".join(words) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

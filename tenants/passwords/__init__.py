"""New passwords without the old one, and the address to which a link for one is mailed.

Tokens and pages are Django's. A link holds for three hours and works once, because the password is
part of it. It never signs in, so a second factor is asked for as ever.
"""

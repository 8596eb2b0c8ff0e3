"""The program that fetches one repository's weights onto the host it runs on.

It is shipped as this folder and run as a file, with nothing installed on the host:

    python3 -I -S <folder>/fetch.py --runtime <unpacked runtime> <request.json>
"""

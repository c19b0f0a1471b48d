"""DICOM: labels from a table or a tag, and pixels that may show text."""

import pickle

import numpy as np
import pytest

from dicom_files import PATIENT, STORED, bundled, save
from mole.errors import ParameterError, SourceError
from mole.sources.dicom_tags import BY_DEVICES, label_tag
from mole.sources.opening import open_source

pydicom = pytest.importorskip("pydicom", reason="needs the extra 'dicom'")
from pydicom.uid import (  # noqa: E402
    SecondaryCaptureImageStorage,
    UltrasoundMultiFrameImageStorage,
)

PARTS = ["CHEST", "HEAD", "CHEST"]


@pytest.fixture
def archive(tmp_path):
    """Three files of two patients, one of them with two frames."""
    for number, part in enumerate(PARTS):
        stored = np.stack([STORED, STORED + 1]) if number == 2 else STORED
        save(
            tmp_path / "archive" / ("DOE" if number else "ROE") / f"{number}.dcm",
            stored,
            BodyPartExamined=part,
            SOPInstanceUID=f"1.2.{number}",
            Modality="CT",
        )
    return tmp_path / "archive"


@pytest.mark.parametrize(
    "tag", ["BodyPartExamined", "(0018,0015)", "0018,0015", "00180015", "(0018, 0015)"]
)
def test_a_tag_is_the_label(archive, tag):
    source = open_source(archive, label_tag=tag)
    assert source.classes == ("CHEST", "HEAD")
    assert source.labels_from == f"the DICOM tag {tag}"
    names = source.splits["train"].extra["file_name"]
    assert dict(zip(names, source.splits["train"].labels, strict=True)) == {
        "0.dcm": 0,
        "1.dcm": 1,
        "2.dcm": 0,
    }
    assert source.splits["train"].labels.tolist() == [1, 0, 0, 0]  # a label for each frame
    assert source.fingerprint != open_source(archive).fingerprint


def test_one_file_may_have_a_label_too(archive):
    source = open_source(archive / "ROE" / "0.dcm", label_tag="BodyPartExamined")
    assert (source.classes, source.splits["train"].labels.tolist()) == (("CHEST",), [0])


def test_files_without_the_tag_are_listed(archive):
    save(archive / "ROE" / "3.dcm", STORED)
    save(archive / "ROE" / "4.dcm", STORED, BodyPartExamined="")
    with pytest.raises(
        SourceError, match=r"2 of 5 DICOM files have no BodyPartExamined .*: ROE/3\.dcm, ROE/4"
    ):
        open_source(archive, label_tag="BodyPartExamined")


@pytest.mark.parametrize("tag", ["Bodypart", "(00180015", "", "1234,56789", "\x1b[2J"])
def test_tags_that_are_none(tag):
    with pytest.raises(
        ParameterError, match="is not a DICOM tag: write it as BodyPartExamined or as"
    ) as caught:
        label_tag(tag)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "tag",
    ["PatientName", "PatientID", "(0010,0020)", "StudyInstanceUID", "PatientBirthDate", "AccessionNumber",
     "OtherPatientIDs", "StudyDate", "ReferringPhysicianName", "StudyID", "SOPInstanceUID",
     "ClinicalTrialSubjectID", "SpecimenIdentifier", "ServiceEpisodeID", "RequestedProcedureID",
     "PerformedProcedureStepID", "PlacerOrderNumberImagingServiceRequest", "PatientSex", "PatientAge",
     "FillerOrderNumberImagingServiceRequest", "AdditionalPatientHistory", "ImageComments", "FileSetID",
     "ReferencedFileID", "StudyDescription", "InstanceNumber", "SliceLocation", "SelectorCSValue",
     "(0009,1001)", "(0019,0010)", "(6000,0022)", "PixelData", "SharedFunctionalGroupsSequence"],
)  # fmt: skip
def test_tags_that_could_tell_people_apart_are_refused(archive, tag):
    with pytest.raises(ParameterError, match="might tell whose images are whose: choose another tag"):
        open_source(archive, label_tag=tag)


@pytest.mark.parametrize(
    "tag",
    ["BodyPartExamined", "Modality", "ViewPosition", "ImageLaterality", "Laterality", "Manufacturer",
     "PhotometricInterpretation", "ImageType", "(0008,0060)", "ConvolutionKernel"],
)  # fmt: skip
def test_tags_that_describe_images_are_taken(tag):
    assert label_tag(tag) in pydicom.datadict.DicomDictionary


def test_no_element_of_the_standard_that_names_somebody_is_taken():
    """Every element that pydicom knows, by the kinds that hold names, days, numbers and free text."""
    telling = ("PN", "UI", "DA", "DT", "TM", "AS", "LT", "ST", "UT", "UC", "UR", "SH", "LO", "IS", "DS")
    taken = set()
    for tag, (kind, *_, keyword) in pydicom.datadict.DicomDictionary.items():
        try:
            label_tag(f"({tag >> 16:04x},{tag & 0xFFFF:04x})")
        except ParameterError:
            continue
        taken.add(keyword)
        assert kind not in telling or keyword in BY_DEVICES, keyword
        assert not keyword.endswith(("ID", "UID", "Identifier")), keyword
    assert {"BodyPartExamined", "ViewPosition", *BY_DEVICES} <= taken


@pytest.mark.parametrize(
    ("column", "name_of"),
    [
        ("SOPInstanceUID", "1.2.{}".format),
        ("path", lambda number: f"{'DOE' if number else 'ROE'}/{number}.dcm"),
        ("id", str),
    ],
)
def test_a_table_names_files_by_uid_path_or_name(archive, tmp_path, column, name_of):
    rows = "".join(f"{name_of(number)},{label}\n" for number, label in enumerate("xyz"))
    (tmp_path / "t.csv").write_text(f"{column},label\n{rows}")
    source = open_source(archive, labels=tmp_path / "t.csv")
    assert source.classes == ("x", "y", "z")
    train = source.splits["train"]
    assert list(train.extra["file_name"]) == ["1.dcm", "2.dcm", "2.dcm", "0.dcm"]
    assert train.labels.tolist() == [1, 2, 2, 0]


def test_two_files_of_one_uid_are_told_of(archive, tmp_path):
    save(archive / "ROE" / "3.dcm", STORED, SOPInstanceUID="1.2.0")
    (tmp_path / "t.csv").write_text("sop_instance_uid,label\n1.2.0,x\n1.2.1,x\n1.2.2,x\n")
    with pytest.raises(SourceError) as caught:
        open_source(archive, labels=tmp_path / "t.csv")
    assert str(caught.value.problems[0]) == "several files of that name (1): 1.2.0"


def test_a_table_beside_the_files_is_found(archive):
    (archive / "metadata.csv").write_text(
        "file_name,label,age\n0.dcm,x,50\n1.dcm,y,60\n2.dcm,x,70\n" + " " * 99
    )
    source = open_source(archive)
    assert (source.kind, source.classes) == ("DICOM", ("x", "y"))
    assert source.splits["train"].extra["age"] == [60, 70, 70, 50]  # a cell for each frame


def test_nothing_of_a_header_stays_in_a_labelled_source(archive):
    source = open_source(archive, label_tag="BodyPartExamined")
    kept = pickle.dumps(source)
    assert PATIENT.encode() not in kept
    assert b"1.2.0" not in kept


# Text in the picture


def test_files_whose_pixels_may_show_text_are_counted(tmp_path):
    save(tmp_path / "1.dcm", STORED, BurnedInAnnotation="YES", Modality="US")
    save(tmp_path / "2.dcm", STORED, Modality="US")
    save(tmp_path / "3.dcm", STORED, SOPClassUID=UltrasoundMultiFrameImageStorage)
    save(tmp_path / "4.dcm", STORED, SOPClassUID=SecondaryCaptureImageStorage)
    save(tmp_path / "5.dcm", STORED, Modality="CT", BurnedInAnnotation="NO")
    assert open_source(tmp_path).privacy_remark == (
        "4 of 5 DICOM files may show text, such as a name (1 says so, 2 are ultrasound, 1 is a screen "
        "capture): pixels leave with whatever text is burned into them"
    )


def test_no_word_where_nothing_says_so(tmp_path):
    save(tmp_path / "5.dcm", STORED, Modality="CT", BurnedInAnnotation="NO")
    assert open_source(tmp_path).privacy_remark == ""
    assert open_source(bundled("CT_small.dcm")).privacy_remark == ""


def test_real_screen_captures_and_ultrasound():
    assert "1 is a screen capture" in open_source(bundled("SC_rgb_rle.dcm")).privacy_remark
    assert "1 is ultrasound" in open_source(bundled("examples_palette.dcm")).privacy_remark
